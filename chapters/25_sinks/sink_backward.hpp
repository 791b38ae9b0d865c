// The backward pass of attention with a sink, head by head. With P the keys' weights, p the sink's
// and out = P·v:
//
//   dv = Pᵀ·dout      dP = dout·vᵀ      r[t] = Σ over s of P[t,s]·dP[t,s]
//   dscores[t,s] = P[t,s]·(dP[t,s] − r[t])            dσ = −Σ over t of p[t]·r[t]
//   dq = dscores·k / √D                               dk = dscoresᵀ·q / √D
//
// The sink is a key whose value is 0. Its dP is therefore 0, which makes its score's gradient
// p·(0 − r); since all of a head's queries share σ, their gradients are summed up. r is also
// Σ over d of dout[t,d]·out[t,d], which a fast kernel computes without P.
#pragma once

#include "25_sinks/sink_attention.hpp"

namespace t2t {

struct SinkScoreGradients {
  Tensor<2> scores;  // [T, S]
  float sink;        // summed over the T rows
};
/// From the weights and the gradient of the keys' weights. A masked key has weight 0, so its score
/// has gradient 0. Throws std::invalid_argument when shapes disagree.
SinkScoreGradients softmax_with_sink_backward(const SinkWeights& weights,  // [T, S] and [T]
                                              const Tensor<2>& dweights);  // [T, S]

struct SinkGradients {
  Tensor<2> q;      // [T, H·D]
  Tensor<2> k;      // [S, G·D]
  Tensor<2> v;      // [S, G·D]
  Tensor<1> sinks;  // [H]
};
/// For grouped_sink_attention. Throws as that does, and when dout has another shape than q.
SinkGradients sink_attention_backward(const Tensor<2>& q,      // [T, H·D]
                                      const Tensor<2>& k,      // [S, G·D]
                                      const Tensor<2>& v,      // [S, G·D]
                                      const Tensor<1>& sinks,  // [H]
                                      std::size_t G, Mask mask,
                                      const Tensor<2>& dout);  // [T, H·D]

}  // namespace t2t
