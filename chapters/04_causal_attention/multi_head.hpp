// Several heads: H attentions side by side, each on its own D = C / H channels of q, k and v.
//
//   q = x·w_qᵀ    k = x·w_kᵀ    v = x·w_vᵀ    out = merge(attention of each head)·w_oᵀ
//
// One head gives each token one mean; H heads give it H means, for about the same number of
// multiplications. Vaswani et al. 2017, section 3.2.2. The projections have no biases (GPT-2's
// have), no positions are encoded (chapter 03 rotates q and k), nothing is cached for later calls
// (05), and each query head has keys of its own (06 shares them). fast/attention_rows.hpp is the
// form that a model runs.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument, with both numbers, unless H divides C, and both are at least 1.
void expect_divides(std::size_t C, std::size_t H);

/// Head h of token t is channels h·D … h·D + D − 1 of its row: [T, C] to [H, T, D] with D = C / H,
/// and back. Throws as expect_divides does.
Tensor<3> split_heads(const Tensor<2>& x, std::size_t H);
Tensor<2> merge_heads(const Tensor<3>& heads);  // [H, T, D] to [T, H·D]

struct AttentionWeights {
  Tensor<2> w_q;  // [C, C] as [out, in], like every projection here
  Tensor<2> w_k;  // [C, C]
  Tensor<2> w_v;  // [C, C]
  Tensor<2> w_o;  // [C, C]
};

/// Elements from N(0, 1/C), so that tokens of variance 1 give q, k and v of variance about 1.
/// Drawn in the order w_q, w_k, w_v, w_o, each row by row.
AttentionWeights draw_attention_weights(std::size_t C, Random& random);

/// The layer as a formula, [T, C] to [T, C]. Queries come from x, keys and values from memory,
/// which is another sequence in cross attention and x itself otherwise. Throws
/// std::invalid_argument when shapes disagree, and as split_heads and expect_mask do.
Tensor<2> multi_head_attention(const Tensor<2>& x,       // [T, C]
                               const Tensor<2>& memory,  // [S, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);
Tensor<2> multi_head_attention(const Tensor<2>& x,  // [T, C]
                               const AttentionWeights& weights, std::size_t H, Mask mask);

}  // namespace t2t
