#include "20_split_models/shows/shown_layer.hpp"

#include <cmath>
#include <utility>

#include "random.hpp"

namespace t2t {

ShownLayer draw_layer(const Range& own, std::uint64_t seed) {
  constexpr std::size_t E = ShownLayer::E, C = ShownLayer::C, F = ShownLayer::F;
  Random random(seed);
  const auto matrix = [&](std::size_t rows, std::size_t cols) {
    return Weight(random.normal<2>({rows, cols}, 1 / std::sqrt(float(cols))));
  };
  ShownLayer layer = {matrix(E, C), {}};
  for (std::size_t e = 0; e < E; ++e) {
    FeedForwardWeights expert;
    expert.w_gate = matrix(F, C), expert.w_up = matrix(F, C), expert.w_down = matrix(C, F);
    if (e >= own.begin && e < own.end) layer.experts.push_back(std::move(expert));
  }
  return layer;
}

}  // namespace t2t
