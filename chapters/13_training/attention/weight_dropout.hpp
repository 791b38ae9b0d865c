// Dropout on attention's weights, as in GPT-2: after softmax, each weight of a query is dropped
// with probability p, and the others are divided by 1 − p. A row's weights then no longer add up to
// 1, but on average they do.
//
//   out = (weights·m)·v        m[t, s] = 0 with probability p, otherwise 1 / (1 − p)
//
//   dv = (weights·m)ᵀ·dout     dweights = m·(dout·vᵀ), then softmax's backward pass
//
// Flash attention makes no matrix of weights; these formulas do, and allocate it, for experiments
// with short sequences. Srivastava et al. 2014.
#pragma once

#include "13_training/attention/dropout.hpp"
#include "13_training/attention/flash_backward.hpp"

namespace t2t {

/// Identifies an attention. Another layer, or another sequence of the pass, drops other weights.
struct DroppedAttention {
  const Dropout& dropout;
  std::size_t layer, sequence, H, G;
  ScoreRule rule;
};

/// One sequence's heads. Throws as dropout_rows does.
void dropped_attention(const DroppedAttention& call,
                       ConstMatrix q,  // [T, H·D]
                       ConstMatrix k,  // [T, G·D]
                       ConstMatrix v,  // [T, G·D]
                       Matrix out);    // [T, H·D], to be written

/// Writes the gradients of q, k and v. Throws as dropout_rows does.
void dropped_attention_backward(const DroppedAttention& call, const AttentionPass& sequence,
                                const AttentionGradientRows& gradients);

}  // namespace t2t
