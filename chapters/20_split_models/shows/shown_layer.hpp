// The layer that --split experts shows: a mixture of small experts, drawn at random.
#pragma once

#include <cstdint>
#include <vector>

#include "14_mixture_of_experts/experts.hpp"
#include "19_ranks/collectives/range.hpp"
#include "20_split_models/shows/show_experts.hpp"

namespace t2t {

/// The whole router, and the experts of a rank.
struct ShownLayer {
  static constexpr std::size_t E = shown_experts, k = 2, C = 64, F = 176;
  static constexpr std::size_t T = 60;  // tokens of each rank

  Weight router;                            // [E, C]
  std::vector<FeedForwardWeights> experts;  // [own]

  Mixture mixture() const { return {router, experts, Activation::swiglu, {k}}; }
};

/// The same router and experts on any number of ranks, of which a rank keeps its own.
ShownLayer draw_layer(const Range& own, std::uint64_t seed);

}  // namespace t2t
