// Attention with a sink: each head has a learned score σ that competes with the keys' scores, and
// has no value.
//
//   weights[t,s] = e^score[t,s] / (Σ over j of e^score[t,j] + e^σ)        out = weights·v
//
// A row's weights sum to less than 1; the rest is the sink's weight. A head whose query matches no
// key can then add almost nothing to the stream, where softmax alone would make it add some mean of
// the values. σ is a score as it stands: it is not divided by √D, and a mask never hides it. OpenAI
// 2025, "gpt-oss-120b & gpt-oss-20b Model Card". sink_forms.hpp computes the same in three other
// ways, sink_backward.hpp its gradients.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// A row of `keys` and its element of `sink` sum to 1 together.
struct SinkWeights {
  Tensor<2> keys;  // [T, S]
  Tensor<1> sink;  // [T]
};

/// Softmax of each row's scores and the sink's. No score overflows, since the highest, the sink's
/// included, is subtracted from all. A row of −infinity alone gives all to the sink. A sink of
/// −infinity is none: the keys' weights are chapter 04's softmax. Throws std::invalid_argument for
/// a sink that is NaN or +infinity, without keys, and, if the sink is −infinity, as softmax does.
SinkWeights softmax_with_sink(const Tensor<2>& scores,  // [T, S]
                              float sink);

/// One head, [T, D]. Throws as chapter 04's attention and as softmax_with_sink do.
Tensor<2> sink_attention(const Tensor<2>& q,  // [T, D]
                         const Tensor<2>& k,  // [S, D]
                         const Tensor<2>& v,  // [S, D]
                         float sink, Mask mask);

/// H query heads on G heads of keys and values, each query head with its own sink: [T, H·D]. Throws
/// as chapter 06's grouped_query_attention and as softmax_with_sink do, and std::invalid_argument
/// unless there are H sinks.
Tensor<2> grouped_sink_attention(const Tensor<2>& q,      // [T, H·D]
                                 const Tensor<2>& k,      // [S, G·D]
                                 const Tensor<2>& v,      // [S, G·D]
                                 const Tensor<1>& sinks,  // [H]
                                 std::size_t G, Mask mask);

}  // namespace t2t
