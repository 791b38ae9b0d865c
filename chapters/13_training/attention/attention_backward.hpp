// The backward pass of attention, as a formula, head by head. With the weights P = softmax(scores)
// and out = P·v:
//
//   dv = Pᵀ·dout        dP = dout·vᵀ
//   dscores[t,s] = P[t,s]·(dP[t,s] − Σ over j of P[t,j]·dP[t,j])
//   dq = dscores·k / √D        dk = dscoresᵀ·q / √D
//
// A rule's own factor replaces 1/√D. A cap multiplies dscores by its derivative, 1 − (score/cap)².
//
// Each weight of a row depends on all of the row's scores, since the weights add up to 1: hence the
// sum over j. A head of keys and values that several query heads read (chapter 06) gets the sum of
// their gradients. RoPE's backward pass is a rotation by the negative angle. flash_backward.hpp
// computes the same block by block. Vaswani et al. 2017; Bridle 1990 (softmax); Su et al. 2021
// (RoPE).
#pragma once

#include "03_rope/rope.hpp"
#include "04_causal_attention/fast/score_rule.hpp"
#include "tensor.hpp"

namespace t2t {

/// The gradient of each row's scores, from the row's weights and their gradient. A masked key has
/// weight 0, so its score has gradient 0. Throws std::invalid_argument when shapes disagree.
Tensor<2> softmax_backward(const Tensor<2>& weights,    // [T, S], softmax's result
                           const Tensor<2>& dweights);  // [T, S]

struct AttentionGradients {
  Tensor<2> q;  // [T, H·D]
  Tensor<2> k;  // [S, G·D]
  Tensor<2> v;  // [S, G·D]
};

/// The formula, for chapter 06's grouped_query_attention. Throws as it does.
AttentionGradients attention_backward(const Tensor<2>& q,  // [T, H·D]
                                      const Tensor<2>& k,  // [S, G·D]
                                      const Tensor<2>& v,  // [S, G·D]
                                      std::size_t H, std::size_t G, const ScoreRule& rule,
                                      const Tensor<2>& dout);  // [T, H·D]

/// The table that rotates gradients of rotated queries and keys back: rope_rows with it, from the
/// same position, is the backward pass of rope_rows. A rotation's inverse has the sine's sign
/// changed; the table's magnitude, which multiplies x, multiplies the gradient as well.
RopeTable backward_table(const RopeTable& table);  // [S, D/2] each

}  // namespace t2t
