#include "20_split_models/expert_parallel/exchange_costs.hpp"

#include "20_split_models/expert_parallel/expert_ranges.hpp"

namespace t2t {

Sent counts_cost(std::size_t E, std::size_t ranks, std::size_t rank) {
  return {ranks - 1, (E - own_experts(E, ranks, rank).size()) * sizeof(float)};
}

Sent rows_cost(const Tensor<2>& counts, std::size_t C, std::size_t rank) {
  const std::size_t p = counts.shape(0), E = counts.shape(1);
  const Range own = own_experts(E, p, rank);
  std::size_t rows = 0;
  for (std::size_t r = 0; r < p; ++r)
    for (std::size_t e = 0; e < E; ++e) {
      const bool is_own = e >= own.begin && e < own.end;
      if ((r == rank) != is_own) rows += std::size_t(counts(r, e));  // there, or back
    }
  return {2 * (p - 1), rows * C * sizeof(float)};
}

}  // namespace t2t
