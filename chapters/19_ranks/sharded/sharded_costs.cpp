#include "19_ranks/sharded/sharded_costs.hpp"

#include <vector>

#include "19_ranks/collectives/pair_tree.hpp"
#include "19_ranks/sharded/sharded_step.hpp"

namespace t2t {

struct SizedTensor {
  std::size_t n;        // elements
  std::size_t gathers;  // in each round of FSDP
};
static std::vector<SizedTensor> sized_tensors(const Config& config) {
  std::vector<SizedTensor> tensors;
  ModelWeights none = room_for(config);
  for_each_tensor(none, config, [&](const TensorInfo& info, auto&) {
    if (info.size() > 0) tensors.push_back({info.size(), info.layer ? 2u : 1u});
  });
  return tensors;
}

/// A rank's chunk of each of so many rows, to each other rank.
static Sent own_chunks_cost(std::size_t rows, std::size_t n, std::size_t size, std::size_t rank) {
  return {size - 1, rows * (n - range_of(n, size, rank).size()) * sizeof(float)};
}

/// Of one tensor's gradient, of which the rank brings so many rows.
static Sent scatter_cost(SumOrder order, std::size_t rows, std::size_t n, std::size_t size,
                         std::size_t rank) {
  return order == SumOrder::pairs ? own_chunks_cost(rows, n, size, rank)
                                  : ring_reduce_scatter_cost(n, size, rank);
}

static std::vector<Range> own_sums(std::size_t parts, std::size_t size, std::size_t rank) {
  return sums_held(range_of(parts, size, rank), parts).sums;
}

static Sent zero1_cost(SumOrder order, const Config& config, std::size_t parts, std::size_t size,
                       std::size_t rank) {
  Sent sum;
  for (const auto& [n, gathers] : sized_tensors(config)) {
    sum += scatter_cost(order, own_sums(parts, size, rank).size(), n, size, rank);
    sum += ring_all_gather_cost(n, size, rank);
  }
  return sum;
}

static Sent fsdp_cost(SumOrder order, const Config& config, std::size_t parts, std::size_t size,
                      std::size_t rank) {
  Sent sum;
  for (std::size_t first = 0; first < parts; first += size)
    for (const auto& [n, gathers] : sized_tensors(config)) {
      for (std::size_t i = 0; i < gathers; ++i) sum += ring_all_gather_cost(n, size, rank);
      sum += scatter_cost(order, first + rank < parts ? 1 : 0, n, size, rank);
    }
  return sum;
}

/// What the ranks tell each other for the norm.
static Sent norm_cost(std::size_t size, std::size_t rank) {
  return tree_all_reduce_cost(2 * norm_values_first * size, size, rank) +
         tree_all_reduce_cost(2 * norm_values_second * size, size, rank);
}

static std::size_t parameters_of(const Config& config) {
  std::size_t sum = 0;
  for (const SizedTensor& tensor : sized_tensors(config)) sum += tensor.n;
  return sum;
}

Sent step_cost(TrainingSplit split, SumOrder order, const Config& config, std::size_t parts,
               std::size_t size, std::size_t rank) {
  const Sent losses = tree_all_reduce_cost(2 * parts, size, rank);
  const std::size_t P = parameters_of(config);
  switch (split) {
    case TrainingSplit::data:
      return losses + (order == SumOrder::pairs ? pairs_all_reduce_cost(P, parts, size, rank)
                                                : ring_all_reduce_cost(P, size, rank));
    case TrainingSplit::zero1:
      return losses + norm_cost(size, rank) + zero1_cost(order, config, parts, size, rank);
    default:
      return losses + norm_cost(size, rank) + fsdp_cost(order, config, parts, size, rank);
  }
}

HeldBytes stored(TrainingSplit split, SumOrder order, const Config& config, std::size_t parts,
                 std::size_t size, std::size_t rank) {
  const Range mine = range_of(parts, size, rank);
  const bool pairs = order == SumOrder::pairs;
  std::size_t shard = 0;
  for (const SizedTensor& tensor : sized_tensors(config))
    shard += range_of(tensor.n, size, rank).size() * sizeof(float);
  const std::size_t whole = parameters_of(config) * sizeof(float);
  Config one_block = config;
  one_block.L = 1;
  switch (split) {
    case TrainingSplit::data:
      return {whole, (1 + mine.size()) * whole, 2 * whole};
    case TrainingSplit::zero1: {
      const std::size_t held = pairs ? sums_held(mine, parts).most : mine.size() > 1 ? 2 : 1;
      return {whole, held * whole, 2 * shard};
    }
    default: {
      const std::size_t held = pairs ? sums_held({0, parts}, parts).most : 1;
      return {shard, held * shard, 2 * shard, 2 * parameters_of(one_block) * sizeof(float)};
    }
  }
}

}  // namespace t2t
