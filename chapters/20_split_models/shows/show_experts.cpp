#include "20_split_models/shows/show_experts.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "19_ranks/collectives/values.hpp"
#include "19_ranks/counting/costs.hpp"
#include "19_ranks/shows/ranks_text.hpp"
#include "20_split_models/expert_parallel/exchange_costs.hpp"
#include "20_split_models/expert_parallel/expert_capacity.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"
#include "20_split_models/shows/shown_layer.hpp"
#include "program/print.hpp"
#include "random.hpp"

namespace t2t {

/// Gradients of 0, of the same shapes.
static ShownLayer zeros_like(const ShownLayer& layer) {
  ShownLayer zeros = layer;
  const auto clear = [](Weight& w) { w.floats().fill(0); };
  clear(zeros.router);
  for (FeedForwardWeights& expert : zeros.experts)
    clear(expert.w_gate), clear(expert.w_up), clear(expert.w_down);
  return zeros;
}

/// What a rank sent in a layer, forward and backward.
struct LayerRun {
  std::size_t rows_sent, rows_received;  // to and from other ranks
  Sent forward, backward;                // counted
};

static LayerRun run_layer(const Communicator& world, std::uint64_t seed) {
  constexpr std::size_t E = ShownLayer::E, C = ShownLayer::C, T = ShownLayer::T;
  const ShownLayer layer = draw_layer(own_experts(E, world.size, world.rank), seed);
  const Mixture mixture = layer.mixture();
  Random random(seed + 1 + world.rank);
  const Tensor<2> x = random.normal<2>({T, C}), dy = random.normal<2>({T, C});
  Tensor<2> y = empty(T, C);

  const Sent before = sent();
  const KeptExperts kept = parallel_experts_rows(world, x, mixture, route_each(x, mixture), y);
  const Sent after = sent();
  ShownLayer gradients = zeros_like(layer);
  FeedForwardWeights none;
  Weight no_gate;
  parallel_experts_backward(world, x, mixture, kept, dy, y,
                            {gradients.router, gradients.experts, none, no_gate});
  const Sent end = sent();

  const Tensor<2> counts = counts_of_ranks(world, kept.exchange.home, E);
  const Sent rows = rows_cost(counts, C, world.rank);
  const bool equal =
      after - before == counts_cost(E, world.size, world.rank) + rows && end - after == rows;
  expect_on_all(world, equal, "experts: the messages counted are not the formula's");
  return {kept.exchange.sent() - kept.exchange.to[world.rank],
          kept.exchange.received() - kept.exchange.from[world.rank], after - before, end - after};
}

static std::string experts_text(const Range& own) {
  if (own.size() == 1) return fmt::format("{}", own.begin);
  return fmt::format("{}–{}", own.begin, own.end - 1);
}

static void show_bytes(const Communicator& world, std::uint64_t seed) {
  constexpr std::size_t E = ShownLayer::E, k = ShownLayer::k, C = ShownLayer::C, T = ShownLayer::T;
  const LayerRun run = run_layer(world, seed);
  const auto of_each = [&](std::size_t value) { return value_of_each(world, double(value)); };
  const std::vector<double> out = of_each(run.rows_sent), in = of_each(run.rows_received),
                            forward = of_each(run.forward.bytes),
                            backward = of_each(run.backward.bytes);
  if (world.rank != 0) return;
  print_section(
      fmt::format("{} experts on {}, and {} tokens on each", E, ranks_text(world.size), T));
  Table table({"rank", "experts", ">rows to others", ">rows from others", ">bytes forward",
               ">bytes backward"});
  for (std::size_t r = 0; r < world.size; ++r)
    table.add({fmt::format("{}", r), experts_text(own_experts(E, world.size, r)),
               with_commas(std::size_t(out[r])), with_commas(std::size_t(in[r])),
               with_commas(std::size_t(forward[r])), with_commas(std::size_t(backward[r]))});
  table.print();
  const std::size_t even = 2 * k * C * T * (world.size - 1) / world.size * sizeof(float);
  const Sent tensor = ring_all_reduce_cost(world.size * T * C, world.size, 0);
  fmt::print("\n");
  print_paragraph(fmt::format(
      "The bytes are the formula's for these rows, and the program has counted as many on each "
      "rank. Forward contains the counts, {} bytes. Under an even load, the rows take "
      "2·k·C·(p − 1)/p floats a token, {} bytes a rank. A tensor parallel network would send {} "
      "bytes from each rank for the same tokens, forward.",
      with_commas(counts_cost(E, world.size, 0).bytes), with_commas(even),
      with_commas(tensor.bytes)));
}

Tensor<2> show_experts(const Communicator& world, std::uint64_t seed) {
  show_bytes(world, seed);
  return show_expert_loads(world, seed);
}

}  // namespace t2t
