#include "20_split_models/expert_parallel/expert_capacity.hpp"

#include <numeric>
#include <vector>

#include "14_mixture_of_experts/training/balance.hpp"
#include "19_ranks/collectives/ring.hpp"

namespace t2t {

Tensor<2> counts_of_ranks(const Communicator& ranks, const Assignment& sorted, std::size_t E) {
  Tensor<2> counts = xt::zeros<float>({ranks.size, E});
  for (std::size_t e = 0; e < E; ++e) counts(ranks.rank, e) = float(sorted.count(e));
  ring_all_gather(ranks, {counts.data(), counts.size()});
  return counts;
}

/// Each expert accepts the first ranks' choices first.
static std::size_t limit_over_ranks(const Communicator& ranks, double slack, Routed& routed) {
  const std::size_t E = routed.p.shape(1), k = routed.weights.shape(1);
  Assignment sorted;
  assign(routed.experts, E, sorted);
  const Tensor<2> counts = counts_of_ranks(ranks, sorted, E);
  const double choices = std::accumulate(counts.begin(), counts.end(), 0.0);
  const std::size_t capacity = capacity_of(std::size_t(choices) / k, k, E, slack);
  std::vector<std::size_t> taken(E, 0);
  for (std::size_t r = 0; r < ranks.rank; ++r)
    for (std::size_t e = 0; e < E; ++e) taken[e] += std::size_t(counts(r, e));
  std::size_t dropped = 0;
  for (std::size_t choice = 0; choice < routed.experts.size(); ++choice)
    if (++taken[routed.experts[choice]] > capacity) routed.weights.data()[choice] = 0, ++dropped;
  return dropped;
}

std::size_t limit_choices(const Communicator& ranks, const ExpertCapacity& capacity,
                          Routed& routed) {
  if (capacity.slack == 0) return 0;
  if (capacity.of == CapacityOf::all_ranks) return limit_over_ranks(ranks, capacity.slack, routed);
  const std::size_t T = routed.weights.shape(0), k = routed.weights.shape(1);
  if (T == 0) return 0;
  return limit_to(capacity_of(T, k, routed.p.shape(1), capacity.slack), routed);
}

}  // namespace t2t
