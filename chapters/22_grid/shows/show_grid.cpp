#include "22_grid/shows/show_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "21_pipeline/stages/stage_tensors.hpp"
#include "program/print.hpp"

namespace t2t {

/// Tensor ranks of one stage and data rank, as in "4=5".
static std::string tensor_text(const GridShape& shape, std::size_t stage, std::size_t data) {
  std::string text;
  for (std::size_t t = 0; t < shape.tensor; ++t)
    text += fmt::format("{}{}", t == 0 ? "" : "=", rank_at(shape, {data, stage, t}));
  return text;
}

std::string grid_text(const GridShape& shape, std::size_t L) {
  const std::size_t width =
      3 + std::max(tensor_text(shape, shape.stages - 1, shape.data - 1).size(),
                   fmt::format("data {}", shape.data - 1).size());
  const auto line = [&](const std::string& head, const auto& cell) {
    std::string text = fmt::format("  {:<24}", head);
    for (std::size_t d = 0; d < shape.data; ++d)
      text += d + 1 < shape.data ? fmt::format("{:<{}}", cell(d), width) : cell(d);
    return text + "\n";
  };
  Config config;
  config.L = L;
  std::string text = line("", [](std::size_t d) { return fmt::format("data {}", d); });
  for (std::size_t s = 0; s < shape.stages; ++s) {
    const Range blocks = blocks_of(config, {s, shape.stages});
    if (s > 0) text += line("", [](std::size_t) { return std::string("|"); });
    text += line(fmt::format("stage {}, blocks {} to {}", s, blocks.begin, blocks.end - 1),
                 [&](std::size_t d) { return tensor_text(shape, s, d); });
  }
  return text;
}

void show_grid(const GridShape& shape) {
  print_section(fmt::format("{} on a grid: {} data x {} stages x {} tensor",
                            ranks_text(shape.ranks()), shape.data, shape.stages, shape.tensor));
  fmt::print("{}\n", grid_text(shape, grid_config().L));
  print_paragraph(
      "Ranks with = between them divide every matrix of their blocks. Below each other, they are "
      "stages of one model. Ranks at the same place in two columns have the same weights, and add "
      "their gradients.");
}

/// Throws on all ranks unless every rank's counts are the formulas'.
static void expect_formulas(const Communicator& world, const GridShape& shape,
                            const TrainingOptions& options, const GridRun& run,
                            std::size_t shards) {
  const GridPlace own = place_of(shape, world.rank);
  const bool equal = run.sent == grid_step_cost(grid_config(), shape, own, options, shards) &&
                     run.memory == grid_memory(grid_config(), shape, own, options, shards);
  expect_on_all(world, equal, "what was counted or measured is not the formula's");
}

void show_costs(const Communicator& world, const GridShape& shape, const TrainingOptions& options,
                const GridRun& run, std::size_t shards) {
  expect_formulas(world, shape, options, run, shards);
  if (world.rank != 0) return;
  print_section("What each rank stores, and sends in a step");
  Table table({">rank", ">data", ">stage", ">tensor", ">parameters", ">stored", ">saved",
               ">to tensor", ">to stages", ">to data", ">values"});
  for (std::size_t rank = 0; rank < shape.ranks(); ++rank) {
    const GridPlace place = place_of(shape, rank);
    const GridSent sent = grid_step_cost(grid_config(), shape, place, options, shards);
    const GridMemory memory = grid_memory(grid_config(), shape, place, options, shards);
    const auto text = [](std::size_t n) { return fmt::format("{}", n); };
    table.add({text(rank), text(place.data), text(place.stage), text(place.tensor),
               with_commas(memory.held.weights / sizeof(float)), with_commas(memory.held.all()),
               with_commas(memory.kept), with_commas(sent.tensor.bytes),
               with_commas(sent.stages.bytes), with_commas(sent.data.bytes),
               with_commas(sent.values.bytes)});
  }
  table.print();
  fmt::print("\n");
  print_paragraph(
      "Bytes, by formula; on every rank the program has counted as many. Stored are weights, "
      "gradients and AdamW's means; saved is what the forward passes leave for the backward ones.");
}

/// How many values are not the same, bit by bit.
static std::size_t different(const std::vector<double>& a, const std::vector<double>& b) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < a.size(); ++n) count += !(a[n] == b[n]);
  return count;
}

Tensor<2> show_losses(const GridShape& shape, const GridRun& alone, const GridRun& run) {
  Tensor<2> losses = empty(shown_steps, 2);
  print_section(
      fmt::format("{} steps of one training, on 1 rank and on {}", shown_steps, shape.ranks()));
  Table table({">step", ">1 rank", fmt::format(">{}", ranks_text(shape.ranks()))});
  double largest = 0;
  for (std::size_t n = 0; n < shown_steps; ++n) {
    losses(n, 0) = float(alone.losses[n]), losses(n, 1) = float(run.losses[n]);
    largest = std::max(largest, std::abs(alone.losses[n] - run.losses[n]));
    if (n == 0 || (n + 1) % 4 == 0)
      table.add({fmt::format("{}", n + 1), fmt::format("{:.3f}", alone.losses[n]),
                 fmt::format("{:.3f}", run.losses[n])});
  }
  table.print();
  fmt::print("\n");
  const std::size_t others =
      different(alone.losses, run.losses) + different(alone.norms, run.norms);
  constexpr double close = 1e-4;
  print_paragraph(
      others == 0 ? "All losses and all norms of gradients have the same bits."
      : largest < close
          ? "Not all have the same bits, since tensor ranks add in an order of their own; all "
            "losses differ by less than 0.0001."
          : fmt::format("The losses differ by up to {:.2g}.", largest));
  return losses;
}

}  // namespace t2t
