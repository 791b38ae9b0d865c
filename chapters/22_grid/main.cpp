// A grid of ranks: a training that is divided by data, by stages, by
// tensor parallelism and by experts at once.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "22_grid/experts/mixture_shard.hpp"
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
  bool same_bits = false, beside_threads = false;
  float limit = 60;  // seconds
  /// On several expert ranks, the model is a mixture whose load is balanced.
  GridTask task(std::uint64_t seed) const {
    const bool mixture = shape.experts > 1;
    return {mixture ? grid_mixture_config() : grid_config(),
            grid_options(seed, parts),
            same_bits ? shown_shards : 0,
            {.switch_loss = mixture ? 0.01f : 0, .z_loss = mixture ? 0.001f : 0}};
  }
};

/// The same on each rank.
static int tour(const Program& program, Communicator world, const GridFlags& flags) {
  silence_others(world);
  world.limit = flags.limit;
  const std::vector<int> ids = byte_ids(measured_text());
  if (flags.beside_threads) return show_threads(world, ids, program.seed()), 0;
  if (world.rank == 0) show_grid(flags.shape);
  const GridTask task = flags.task(program.seed());
  const GridRun run = run_grid(world, flags.shape, task, ids);
  show_costs(world, flags.shape, task, run);
  if (world.rank == 0)
    program.save("losses", show_losses(flags.shape, run_grid(single_rank(), {}, task, ids), run));
  if (!flags.same_bits || flags.shape.experts > 1) return 0;
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
    throw std::invalid_argument(fmt::format(
        "ranks: wanted at most {}, got {} data x {} stages x {} tensor x {} experts = {}",
        most_ranks, flags.shape.data, flags.shape.stages, flags.shape.tensor, flags.shape.experts,
        flags.shape.ranks()));
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
  program.size(
      "experts", flags.shape.experts,
      "ranks among which the experts of a mixture are divided; 1: a model without experts");
  program.size("parts", flags.parts, "micro-batches of a step");
  program.yes("same-bits", flags.same_bits,
              "add in one order on every grid: the model has 8 shards on any number of ranks");
  program.yes("beside-threads", flags.beside_threads,
              "time two ranks with one thread each beside one rank with two threads, and nothing "
              "else");
  program.number("limit", flags.limit,
                 "seconds after which a message that has not gone through ends all ranks");
  program.has_solutions(solutions);
  const auto show = [&] {
    const std::size_t ranks = flags.beside_threads ? 2 : flags.shape.ranks();
    if (!is_rank()) start_ranks(ranks, {argv, argv + argc});
    return run_on_ranks("22_grid",
                        [&](const Communicator& world) { return tour(program, world, flags); });
  };
  return program.run_tasks(argc, argv,
                           {{{"",
                              {"data", "stages", "tensor", "experts", "parts", "same-bits",
                               "beside-threads", "limit", "seed", "save"},
                              show}},
                            {},
                            [&] { expect_flags(flags); }});
}
