// Attention whose result passes a gate, as in Qwen3-Next's layers that attend.
//
//   q, z = x·W_qᵀ        k = x·W_kᵀ        v = x·W_vᵀ         a head of W_q has D rows of q, then D
//                                                             rows of z
//   q = rope(norm(q)·gain_q)               k = rope(norm(k)·gain_k)                 head by head
//   y = (attention(q, k, v) ⊙ sigmoid(z))·W_oᵀ
//
// RoPE rotates the first R of a head's D channels, in halves: channel i with channel i + R/2. The
// other channels compare what tokens say wherever they stand. With the gate, a head can add nothing
// to a token, for which softmax alone would need a key that says nothing (chapter 25's sinks). G
// heads of keys serve H heads of queries (chapter 06). Qiu et al. 2025, "Gated Attention for Large
// Language Models". qwen3_next.hpp puts it between layers with a state.
#pragma once

#include "03_rope/rope.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/fast/grouped_rows.hpp"
#include "24_delta_rule/qwen3_next/gated_settings.hpp"

namespace t2t {

/// What attention reads, and the gates.
struct GatedHeads {
  Tensor<2> q, z;  // [T, H·D]
  Tensor<2> k, v;  // [T, G·D]
};

/// Divides each head of q or k by its root mean square, with settings.eps, multiplies it by gain,
/// and rotates the first R of its channels: [T, heads·D]. Row t is at position start + t. Throws
/// std::invalid_argument as chapter 03's expect_table does.
Tensor<2> ready_heads(ConstMatrix x,          // [T, heads·D]
                      const Tensor<1>& gain,  // [D]
                      const GatedAttentionSettings& settings,
                      const RopeTable& rope,  // [S, R/2]
                      std::size_t start);

/// The products of x with W_q, W_k and W_v. The first is taken apart into q and z, and q and k
/// are made ready by ready_heads. Throws as that does.
GatedHeads gated_heads(const Tensor<2>& x,  // [T, C]
                       const GatedAttentionWeights& weights, const GatedAttentionSettings& settings,
                       const RopeTable& rope, std::size_t start);

/// (heads ⊙ sigmoid(z))·W_oᵀ: [T, C]. For a z far below or above 0, the gate is 0 or 1.
Tensor<2> through_gate(const Tensor<2>& heads,  // [T, H·D]
                       const Tensor<2>& z,      // [T, H·D]
                       const Weight& w_o);      // [C, H·D]

/// The formula, for a whole text: [T, C]. Throws std::invalid_argument as expect_gated_call
/// and ready_heads do.
Tensor<2> gated_attention(const Tensor<2>& x,  // [T, C]
                          const GatedAttentionWeights& weights,
                          const GatedAttentionSettings& settings,
                          const RopeTable& rope);  // [S, R/2]

/// T new tokens, which follow those in the cache: [T, C]. Appends their keys and values. Throws as
/// the formula does, and when the cache or the scratch is too small; the cache is unchanged then.
Tensor<2> gated_attention_step(const Tensor<2>& x,  // [T, C]
                               const GatedAttentionWeights& weights,
                               const GatedAttentionSettings& settings, const RopeTable& rope,
                               KvCache& cache,  // [G, S, D]
                               GroupedScratch& scratch);

}  // namespace t2t
