// The layer's backward pass, for a text from its first token on: delta_layer.hpp's steps in the
// opposite order.
//
//   y = heads·W_oᵀ             dheads = dy·W_o
//   heads = n ⊙ silu(z)        dn = dheads ⊙ silu(z)       dz = dheads ⊙ n ⊙ silu′(z)
//   n = norm(o)·gain           do, dgain: chapter 13's formula, head by head
//   o = rule(q, k, v, β, g)    dq … dg: the rule's own backward pass
//   β = sigmoid(s)             ds = dβ·β·(1 − β)
//   g = −e^a·softplus(p + b)   dp = −dg·e^a·σ(p + b)       da = Σ dg·g       db = Σ dp
//
// The sums run over all tokens. x is read by four projections, and its gradient is the sum of
// theirs. What a head does with its tokens is a value, HeadRule, so that one layer can be trained
// with several rules and nothing else changed (learned/).
#pragma once

#include <functional>
#include <vector>

#include "24_delta_rule/layer/delta_layer.hpp"

namespace t2t {

/// What one head does with the tokens of a whole text, and its backward pass.
struct HeadRule {
  std::function<Tensor<2>(const DeltaTokens&)> forward;  // returns o, [T, Dv]
  /// The gradients of the tokens. g and β that the rule does not read get zeros.
  std::function<DeltaTokens(const DeltaTokens&, const Tensor<2>& dout)> backward;
};
/// The gated delta rule, in chunks, from a state of zeros.
HeadRule delta_head(const DeltaLayerSettings& settings);

/// What a forward pass keeps for the backward pass.
struct DeltaLayerPass {
  Tensor<2> projected;              // [T, 2·G·D+H·Dv], before the convolution
  std::vector<DeltaTokens> tokens;  // [H]
  std::vector<Tensor<2>> o;         // [H] of [T, Dv]
  Tensor<2> z;                      // [T, H·Dv]
  Tensor<2> heads;                  // [T, H·Dv], what W_o reads
};

/// The layer for a whole text, [T, C] to [T, C], with a rule for all heads. With delta_head it is
/// delta_layer from an empty state. Throws std::invalid_argument when shapes disagree.
Tensor<2> delta_layer_pass(const Tensor<2>& x,  // [T, C]
                           const DeltaLayerWeights& weights, const DeltaLayerSettings& settings,
                           const HeadRule& rule, DeltaLayerPass& kept);

/// Weights of the same shapes, all 0: where gradients are added up.
DeltaLayerWeights zeros_like(const DeltaLayerWeights& weights);

/// Returns the gradient of x, [T, C], and adds those of the weights. kept is what the forward pass
/// left for the same x, weights and rule. The gradients' storage stays where it is. Throws
/// std::invalid_argument when shapes disagree.
Tensor<2> delta_layer_backward(const Tensor<2>& x,  // [T, C]
                               const DeltaLayerWeights& weights, const DeltaLayerSettings& settings,
                               const HeadRule& rule, const DeltaLayerPass& kept,
                               const Tensor<2>& dy,  // [T, C]
                               DeltaLayerWeights& gradients);

}  // namespace t2t
