#include "22_grid/shows/show_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "21_pipeline/stages/stage_tensors.hpp"
#include "program/print.hpp"

namespace t2t {

/// The ranks of one stage and data rank, as in "4=5~6=7": two expert ranks with two tensor ranks.
static std::string ranks_at(const GridShape& shape, std::size_t stage, std::size_t data) {
  std::string text;
  for (std::size_t e = 0; e < shape.experts; ++e)
    for (std::size_t t = 0; t < shape.tensor; ++t)
      text += fmt::format("{}{}",
                          t > 0   ? "="
                          : e > 0 ? "~"
                                  : "",
                          rank_at(shape, {data, stage, t, e}));
  return text;
}

std::string shape_text(const GridShape& shape) {
  return fmt::format("{} data x {} stages x {} tensor", shape.data, shape.stages, shape.tensor) +
         (shape.experts > 1 ? fmt::format(" x {} experts", shape.experts) : "");
}

std::string grid_text(const GridShape& shape, std::size_t L) {
  const std::size_t width = 3 + std::max(ranks_at(shape, shape.stages - 1, shape.data - 1).size(),
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
                 [&](std::size_t d) { return ranks_at(shape, s, d); });
  }
  return text;
}

void show_grid(const GridShape& shape) {
  print_section(fmt::format("{} on a grid: {}", ranks_text(shape.ranks()), shape_text(shape)));
  fmt::print("{}\n", grid_text(shape, grid_config().L));
  print_paragraph(
      "Ranks with = between them divide every matrix of their blocks. Below each other, they are "
      "stages of one model. Ranks at the same place in two columns have the same weights, and add "
      "their gradients.");
  if (shape.experts > 1)
    print_paragraph(
        "Ranks with ~ between them divide the experts. They send each other tokens, and of "
        "everything but experts they add their gradients, too.");
}

/// Throws on all ranks unless every rank's counts are the formulas'.
static void expect_formulas(const Communicator& world, const GridShape& shape, const GridTask& task,
                            const GridRun& run) {
  const auto& [config, options, shards, balance] = task;
  const GridPlace own = place_of(shape, world.rank);
  const bool equal =
      run.sent == grid_step_cost(config, shape, own, options, shards, balance, run.rows) &&
      run.memory == grid_memory(config, shape, own, options, shards, balance);
  expect_on_all(world, equal, "what was counted or measured is not the formula's");
}

void show_costs(const Communicator& world, const GridShape& shape, const GridTask& task,
                const GridRun& run) {
  expect_formulas(world, shape, task, run);
  const auto& [config, options, shards, balance] = task;
  std::vector<double> rows(world.size);
  rows[world.rank] = double(run.rows);
  rows = sum_of_values(world, rows);
  if (world.rank != 0) return;
  print_section("What each rank stores, and sends in a step");
  const bool mixture = shape.experts > 1;
  std::vector<std::string> titles = {">rank",       ">data",    ">stage", ">tensor",
                                     ">parameters", ">stored",  ">saved", ">to tensor",
                                     ">to stages",  ">to data", ">values"};
  if (mixture) titles.insert(titles.begin() + 4, ">expert"), titles.push_back(">to experts");
  Table table(titles);
  for (std::size_t rank = 0; rank < shape.ranks(); ++rank) {
    const GridPlace place = place_of(shape, rank);
    const GridSent sent =
        grid_step_cost(config, shape, place, options, shards, balance, std::size_t(rows[rank]));
    const GridMemory memory = grid_memory(config, shape, place, options, shards, balance);
    std::vector<std::string> cells;
    for (const std::size_t n : {rank, place.data, place.stage, place.tensor})
      cells.push_back(fmt::format("{}", n));
    if (mixture) cells.push_back(fmt::format("{}", place.expert));
    for (const std::size_t n : {memory.held.weights / sizeof(float), memory.held.all(), memory.kept,
                                std::size_t(sent.tensor.bytes), std::size_t(sent.stages.bytes),
                                std::size_t(sent.data.bytes), std::size_t(sent.values.bytes)})
      cells.push_back(with_commas(n));
    if (mixture) cells.push_back(with_commas(sent.experts.bytes));
    table.add(cells);
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
