// Sizes and weights of attention with a gate (gated_attention.hpp), and what they must be.
#pragma once

#include "weight.hpp"

namespace t2t {

struct GatedAttentionSettings {
  std::size_t C, H, G, D;
  std::size_t R;      // channels of a head that are rotated, an even number of at most D
  float eps = 1e-6f;  // of the norms of q and k
};

struct GatedAttentionWeights {
  Weight w_q;                // [2·H·D, C]: of each head q, then the gate
  Weight w_k, w_v;           // [G·D, C]
  Tensor<1> q_gain, k_gain;  // [D], shared by all heads
  Weight w_o;                // [C, H·D]
};

/// Throws std::invalid_argument, naming the value, when a size is 0, when G does not divide H, when
/// R is not an even number from 2 to D, and unless eps is a finite number above 0.
void expect_gated(const GatedAttentionSettings& settings);

/// The same, and when x or a weight has another shape than the settings say.
void expect_gated_call(const Tensor<2>& x,  // [T, C]
                       const GatedAttentionWeights& weights,
                       const GatedAttentionSettings& settings);

}  // namespace t2t
