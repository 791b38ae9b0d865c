// A network beside the experts, which every token goes through, so that no expert has to learn on
// its own what all tokens need.
//
//   DeepSeek-V3   y = Σ weight_i·expert_i(x) + shared(x)
//   Qwen 2        y = Σ weight_i·expert_i(x) + sigmoid(x·gate)·shared(x)
//
// Dai et al. 2024, "DeepSeekMoE".
#pragma once

#include "07_swiglu/fast/feed_forward_rows.hpp"

namespace t2t {

/// The network and its gate; each may be missing. Owns nothing.
struct SharedNetwork {
  const FeedForwardWeights* weights = nullptr;
  const Weight* gate = nullptr;  // [1, C]

  bool is_there() const { return weights != nullptr; }
};

/// Each token's gate: [T], sigmoids, or 1 without a gate. Throws std::invalid_argument when the
/// gate is not [1, C].
Tensor<1> gates_of(const Tensor<2>& x,  // [T, C]
                   const SharedNetwork& shared);

/// The formula. Returns [T, C]; zeros if there is no network. Throws as feed_forward and gates_of.
Tensor<2> shared_network(const Tensor<2>& x,  // [T, C]
                         const SharedNetwork& shared, Activation activation);

/// The row kernel; there must be a network. Allocates nothing. Throws as the formula does, before
/// anything is written, when the scratch is too small, and when y or gates has another shape.
void shared_network_rows(ConstMatrix x,  // [T, C]
                         const SharedNetwork& shared, Activation activation,
                         FeedForwardScratch& scratch,
                         Matrix gates,  // [T, 1], overwritten
                         Matrix y);     // [T, C]

}  // namespace t2t
