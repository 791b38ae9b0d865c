// Attention with a sink, computed in three other ways that give the same result.
//
//   one more key      its score is σ for every query, and its value is 0
//   afterwards        attention(q, k, v)·sigmoid(lse − σ), with lse = ln Σ e^score
//   key by key        online softmax that begins with m = σ, l = 1 and o = 0
//
// The first is how gpt-oss was first published, and needs a copy of the scores. The second needs
// nothing but a kernel that returns lse: softmax's sum Σ e^score becomes Σ e^score + e^σ, and their
// ratio is the sigmoid. The third costs nothing in chapter 11's kernels. When a long cache is read
// in splits, the sink must enter the sum once, and not once in each split.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// One head, [T, D], with one more key. Throws as sink_attention does.
Tensor<2> extra_key_attention(const Tensor<2>& q,  // [T, D]
                              const Tensor<2>& k,  // [S, D]
                              const Tensor<2>& v,  // [S, D]
                              float sink, Mask mask);

/// ln Σ e^score of each row, [T], for scores of any size. −infinity for a row of −infinity.
Tensor<1> log_sum_exp(const Tensor<2>& scores);  // [T, S]

/// Attention without a sink, each row multiplied by what its keys would get beside the sink. Throws
/// as sink_attention does.
Tensor<2> rescaled_attention(const Tensor<2>& q,  // [T, D]
                             const Tensor<2>& k,  // [S, D]
                             const Tensor<2>& v,  // [S, D]
                             float sink, Mask mask);

/// Key by key, with the S keys divided into splits of almost equal length, each with an online
/// softmax of its own. Throws as sink_attention does, and std::invalid_argument when splits is 0.
Tensor<2> online_sink_attention(const Tensor<2>& q,  // [T, D]
                                const Tensor<2>& k,  // [S, D]
                                const Tensor<2>& v,  // [S, D]
                                float sink, Mask mask, std::size_t splits = 1);

}  // namespace t2t
