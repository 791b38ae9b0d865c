// A layer with the gated delta rule in the place of attention: from x to y, with a state of fixed
// size in the place of a cache.
//
//   q, k, v = silu(convolution of x·W_qkvᵀ)        q: unit length, then / √D      k: unit length
//   β = sigmoid(x·W_βᵀ)       g = −e^a·softplus(x·W_gᵀ + b)      one of each for each head
//   o = the gated delta rule, head by head          y = (norm(o)·gain ⊙ silu(x·W_zᵀ))·W_oᵀ
//
// The norm runs over the Dv channels of each head. G heads of q and k serve H heads of v, which
// have a state, a gate and a β each: neighbouring heads share a query and a key, as in chapter 06.
// In Qwen3-Next, whose linear layers these are, G = 16 and H = 32. Yang et al. 2024, "Gated Delta
// Networks". delta_layer_backward.hpp is the backward pass; qwen3_next/ reads the layer from files.
#pragma once

#include "24_delta_rule/delta_rule.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

struct DeltaLayerSettings {
  std::size_t C, H, D, Dv;
  std::size_t W = 4;       // tokens of the convolution
  std::size_t chunk = 32;  // a call of more than one token goes in chunks of so many
  std::size_t G = 0;       // heads of q and k, which divide the H heads of v; 0: H
  float eps = 1e-6f;       // the norm's

  std::size_t key_heads() const { return G > 0 ? G : H; }
  std::size_t channels() const { return 2 * key_heads() * D + H * Dv; }  // of q, k and v
};

struct DeltaLayerWeights {
  Tensor<2> w_qkv;           // [2·G·D+H·Dv, C]: q of all heads, then k, then v
  Tensor<2> conv;            // [2·G·D+H·Dv, W]
  Tensor<2> w_beta, w_gate;  // [H, C] each
  Tensor<1> a, b;            // [H] each
  Tensor<2> w_z;             // [H·Dv, C]
  Tensor<1> gain;            // [Dv], shared by all heads
  Tensor<2> w_o;             // [C, H·Dv]
};

/// What one sequence leaves in one layer. It does not grow.
struct DeltaLayerState {
  Tensor<3> memory;  // [H, D, Dv]
  Tensor<2> kept;    // [W − 1, 2·G·D+H·Dv], of the convolution
};

/// Throws std::invalid_argument, naming the value, unless all sizes are at least 1, the heads of q
/// and k divide H, and eps is a finite number above 0.
void expect_delta_layer(const DeltaLayerSettings& settings);
DeltaLayerWeights draw_delta_weights(const DeltaLayerSettings& settings, Random& random);
DeltaLayerState empty_delta_state(const DeltaLayerSettings& settings);
/// Bytes of the states of L layers for one sequence of any length.
std::size_t delta_state_bytes(std::size_t L, const DeltaLayerSettings& settings,
                              std::size_t number_bytes);

/// Throws std::invalid_argument, naming the tensor, when x or a weight has another shape than the
/// settings say, and as expect_delta_layer does.
void expect_delta_call(const Tensor<2>& x,  // [T, C]
                       const DeltaLayerWeights& weights, const DeltaLayerSettings& settings);

/// Inputs of the rule for head h of v, from the layer's x and what the convolution made of it.
/// Throws std::invalid_argument when shapes disagree.
DeltaTokens delta_tokens(const Tensor<2>& x,    // [T, C]
                         const Tensor<2>& qkv,  // [T, 2·G·D+H·Dv]
                         const DeltaLayerWeights& weights, const DeltaLayerSettings& settings,
                         std::size_t h);

/// The layer for T new tokens: [T, C] to [T, C]. One token takes a step of the recurrence, and
/// several go in chunks. In calls of any lengths, a text gets what it gets in one call, up to
/// rounding. Throws std::invalid_argument when shapes disagree, before the state is changed.
Tensor<2> delta_layer(const Tensor<2>& x,  // [T, C]
                      const DeltaLayerWeights& weights, const DeltaLayerSettings& settings,
                      DeltaLayerState& state);

}  // namespace t2t
