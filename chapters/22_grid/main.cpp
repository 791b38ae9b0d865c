// A grid of ranks: a training that is divided by data, by stages and by tensor parallelism at once.
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "01_embedding/embedding.hpp"
#include "19_ranks/shows/measured_text.hpp"
#include "19_ranks/start/start_ranks.hpp"
#include "20_split_models/tensor_parallel/split_gradients.hpp"
#include "22_grid/shows/show_grid.hpp"
#include "22_grid/shows/show_same_bits.hpp"
#include "program/program.hpp"
#include "program/solutions.hpp"

using namespace t2t;

/// What the flags choose.
struct GridFlags {
  GridShape shape = {.data = 2, .stages = 2, .tensor = 2};
  std::size_t parts = 4;
  bool same_bits = false;
  float limit = 60;  // seconds
  std::size_t shards() const { return same_bits ? shown_shards : 0; }
};

/// The same on each rank.
static int tour(const Program& program, Communicator world, const GridFlags& flags) {
  silence_others(world);
  world.limit = flags.limit;
  if (world.rank == 0) show_grid(flags.shape);
  const std::vector<int> ids = byte_ids(measured_text());
  const TrainingOptions options = grid_options(program.seed(), flags.parts);
  const auto run_on = [&](const Communicator& ranks, const GridShape& shape) {
    return run_grid(ranks, shape, grid_config(), options, ids, flags.shards());
  };
  const GridRun run = run_on(world, flags.shape);
  show_costs(world, flags.shape, options, run, flags.shards());
  if (world.rank == 0) {
    const Communicator self = single_rank();
    program.save("losses", show_losses(flags.shape, run_on(self, {1, 1, 1}), run));
  }
  if (!flags.same_bits) return 0;
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
        "ranks: wanted at most {}, got {} data x {} stages x {} tensor = {}", most_ranks,
        flags.shape.data, flags.shape.stages, flags.shape.tensor, flags.shape.ranks()));
  if (flags.parts < flags.shape.data || flags.parts > most_ranks)
    throw std::invalid_argument(
        fmt::format("--parts: wanted from {}, the data ranks, to {}, got {}", flags.shape.data,
                    most_ranks, flags.parts));
  if (!(flags.limit > 0))
    throw std::invalid_argument(
        fmt::format("--limit: wanted a time above 0 seconds, got {:g}", flags.limit));
  blocks_of(grid_config(), {0, flags.shape.stages});          // refuses more stages than blocks
  trained_config_of(grid_config(), {0, flags.shape.tensor});  // and more tensor ranks than heads
}

int main(int argc, char** argv) {
  GridFlags flags;
  Program program("22_grid",
                  "One training on a grid of processes: by data, by stages and by tensor "
                  "parallelism at once. Shows the grid, what each rank stores and sends, and the "
                  "losses on one rank and on all.");
  program.size("data", flags.shape.data, "ranks among which the micro-batches are divided");
  program.size("stages", flags.shape.stages, "ranks among which the blocks are divided");
  program.size("tensor", flags.shape.tensor, "ranks among which every matrix is divided");
  program.size("parts", flags.parts, "micro-batches of a step");
  program.yes("same-bits", flags.same_bits,
              "add in one order on every grid: the model has 8 shards on any number of ranks");
  program.number("limit", flags.limit,
                 "seconds after which a message that has not gone through ends all ranks");
  program.has_solutions(solutions);
  const auto show = [&] {
    if (!is_rank()) start_ranks(flags.shape.ranks(), {argv, argv + argc});
    return run_on_ranks("22_grid",
                        [&](const Communicator& world) { return tour(program, world, flags); });
  };
  return program.run_tasks(
      argc, argv,
      {{{"", {"data", "stages", "tensor", "parts", "same-bits", "limit", "seed", "save"}, show}},
       {},
       [&] { expect_flags(flags); }});
}
