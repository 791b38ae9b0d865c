#include "20_split_models/expert_parallel/expert_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "shapes.hpp"

namespace t2t {

Range own_experts(std::size_t E, std::size_t ranks, std::size_t rank) {
  expect(ranks <= E, "ranks", fmt::format("at most one for each of E = {} experts", E), ranks);
  expect(rank < ranks, "rank", fmt::format("below the {} ranks", ranks), rank);
  return range_with_more_first(E, ranks, rank);
}

std::vector<std::size_t> dealt_out(ConstRow loads, std::size_t ranks) {
  const std::size_t E = loads.size();
  std::vector<std::size_t> by_load(E), order;
  std::iota(by_load.begin(), by_load.end(), std::size_t(0));
  std::ranges::stable_sort(by_load, std::greater(), [&](std::size_t e) { return loads[e]; });
  for (std::size_t rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < own_experts(E, ranks, rank).size(); ++i)
      order.push_back(by_load[rank + i * ranks]);
  return order;
}

double fullest_over_mean(ConstRow loads, std::size_t ranks) {
  const double all = std::accumulate(loads.begin(), loads.end(), 0.0);
  expect(all > 0, "the sum of all loads", "above 0", all);
  double most = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Range own = own_experts(loads.size(), ranks, rank);
    const ConstRow of_rank = loads.subspan(own.begin, own.size());
    most = std::max(most, std::accumulate(of_rank.begin(), of_rank.end(), 0.0));
  }
  return most * double(ranks) / all;
}

}  // namespace t2t
