// A grid of ranks: a training that is divided by data, by stages, by
// tensor parallelism and by experts at once.
#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "22_grid/experts/mixture_shard.hpp"
#include "22_grid/program/train_on_grid.hpp"
#include "22_grid/shows/show_grid.hpp"
#include "22_grid/shows/show_same_bits.hpp"
#include "22_grid/shows/show_threads.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

/// What the flags choose.
struct GridFlags {
  GridShape shape = {.data = 2, .stages = 2, .tensor = 2};
  std::size_t parts = 4;
  bool same_bits = false, mixture = false, beside_threads = false;
  float limit = 60;  // seconds
  GridTrainFlags trained;
  bool trains_mixture() const { return mixture || shape.experts > 1; }
  /// A mixture's load is balanced over the batch.
  GridTask task(std::uint64_t seed) const {
    return {trains_mixture() ? grid_mixture_config() : grid_config(),
            grid_options(seed, parts),
            same_bits ? shown_shards : 0,
            {.switch_loss = trains_mixture() ? 0.01f : 0, .z_loss = trains_mixture() ? 0.001f : 0}};
  }
};

/// The same on each rank.
static int tour(const Program& program, const Communicator& world, const GridFlags& flags) {
  const std::vector<int> ids = byte_ids(measured_text());
  if (world.rank == 0) show_grid(flags.shape);
  const GridTask task = flags.task(program.seed());
  const GridRun run = run_grid(world, flags.shape, task, ids);
  show_costs(world, flags.shape, task, run);
  if (world.rank == 0)
    program.save("losses", show_losses(flags.shape, run_grid(single_rank(), {}, task, ids), run));
  if (!flags.same_bits || flags.trains_mixture()) return 0;
  const Tensor<2> logits = show_team_text(RankGrid(world, flags.shape), program.seed());
  if (world.rank != 0) return 0;
  show_bits_costs();
  show_bits_times(ids, program.seed());
  program.save("logits", logits);
  return 0;
}

static void expect_flags(const GridFlags& flags) {
  constexpr std::size_t most_ranks = 64;
  if (flags.shape.ranks() > most_ranks)
    throw std::invalid_argument(fmt::format("ranks: wanted at most {}, got {} = {}", most_ranks,
                                            shape_text(flags.shape), flags.shape.ranks()));
  const std::size_t replicas = flags.shape.data * flags.shape.experts;
  if (flags.shape.experts > 1 && flags.parts % replicas != 0)
    throw std::invalid_argument(
        fmt::format("--parts: wanted a multiple of {}, data ranks times expert ranks, got {}",
                    replicas, flags.parts));
  if (flags.parts < flags.shape.data || flags.parts > most_ranks)
    throw std::invalid_argument(
        fmt::format("--parts: wanted from {}, the data ranks, to {}, got {}", flags.shape.data,
                    most_ranks, flags.parts));
  if (!(flags.limit > 0))
    throw std::invalid_argument(
        fmt::format("--limit: wanted a time above 0 seconds, got {:g}", flags.limit));
  blocks_of(grid_config(), {0, flags.shape.stages});  // refuses more stages than blocks
  // More tensor ranks than heads, and more expert ranks than experts.
  grid_config_of(flags.task(1).config, {0, flags.shape.tensor}, {0, flags.shape.experts});
}

int main(int argc, char** argv) {
  GridFlags flags;
  Program program("22_grid",
                  "One training on a grid of processes: by data, by stages, by tensor parallelism "
                  "and by experts at once. Shows the grid, what each rank stores and sends, and "
                  "the losses on one rank and on all.");
  program.size("data", flags.shape.data, "ranks among which the micro-batches are divided");
  program.size("stages", flags.shape.stages, "ranks among which the blocks are divided");
  program.size("tensor", flags.shape.tensor, "ranks among which every matrix is divided");
  program.size("experts", flags.shape.experts,
               "ranks among which the experts of a mixture are divided");
  program.yes("mixture", flags.mixture,
              "train a mixture of experts, also on one expert rank; several always train one");
  program.size("parts", flags.parts, "micro-batches of a step");
  program.yes("same-bits", flags.same_bits,
              "add in one order on every grid: the model has 8 shards on any number of ranks");
  program.number("limit", flags.limit,
                 "seconds after which a message that has not gone through ends all ranks");
  program.output("train", flags.trained.folder,
                 "train in this folder, and go on if a training has begun there, on any grid",
                 NamedFile::filled);
  program.size("steps", flags.trained.steps, "steps of that training");
  program.size("every", flags.trained.every, "steps from one checkpoint to the next");
  program.yes("beside-threads", flags.beside_threads,
              "time two ranks with one thread each beside one rank with two threads");
  program.has_solutions(solutions);
  const auto on = [&](std::size_t ranks, const std::function<int(const Communicator&)>& part) {
    if (!is_rank()) start_ranks(ranks, {argv, argv + argc});
    return run_on_ranks("22_grid", [&](Communicator world) {
      silence_others(world);
      world.limit = flags.limit;
      return part(world);
    });
  };
  const Task train = {"train",
                      {"data", "stages", "tensor", "experts", "mixture", "parts", "same-bits",
                       "limit", "steps", "every", "seed"},
                      [&] {
                        const GridTask task = flags.task(program.seed());
                        if (!is_rank()) expect_grid_train(flags.trained, task);
                        return on(flags.shape.ranks(), [&](const Communicator& world) {
                          return train_on_grid(world, flags.shape, task, flags.trained,
                                               byte_ids(measured_text()));
                        });
                      }};
  const Task threads = {"beside-threads", {"limit", "seed"}, [&] {
                          return on(2, [&](const Communicator& world) {
                            show_threads(world, byte_ids(measured_text()), program.seed());
                            return 0;
                          });
                        }};
  const Task show = {"",
                     {"data", "stages", "tensor", "experts", "mixture", "parts", "same-bits",
                      "limit", "seed", "save"},
                     [&] {
                       return on(flags.shape.ranks(), [&](const Communicator& world) {
                         return tour(program, world, flags);
                       });
                     }};
  return program.run_tasks(argc, argv, {{train, threads, show}, {}, [&] { expect_flags(flags); }});
}
