// Grouped-query attention: H query heads share G heads of keys and values, H / G query heads each.
//
//   out[h] = softmax(q[h]·k[g]ᵀ / √D + mask)·v[g]        g = h / (H / G), rounded down
//
// With G = H this is multi-head attention (chapter 04), with G = 1 multi-query attention. Shazeer
// 2019, "Fast Transformer Decoding"; Ainslie et al. 2023, "GQA". This file contains the formula and
// the weights, grouped_rows.hpp the kernel. Chapter 08's block uses it; chapter 10's model has
// H = 9 and G = 3.
#pragma once

#include "04_causal_attention/fast/score_rule.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument unless H and G are at least 1 and G divides H, with both numbers:
/// "groups: wanted G key and value heads that divide H query heads, got H = 9, G = 2".
void expect_groups(std::size_t H, std::size_t G);

/// The group whose keys and values query head h reads: h / (H / G), rounded down, so that
/// neighbouring heads share a group. Checks nothing: G divides H.
std::size_t group_of(std::size_t h, std::size_t H, std::size_t G);

/// Attention as a formula, without the projections. Returns [T, H·D]. Throws std::invalid_argument
/// when shapes disagree, and as expect_groups and chapter 04's expect_mask do.
Tensor<2> grouped_query_attention(const Tensor<2>& q,  // [T, H·D]
                                  const Tensor<2>& k,  // [S, G·D]
                                  const Tensor<2>& v,  // [S, G·D]
                                  std::size_t H, std::size_t G, const ScoreRule& rule);

/// The weights of one layer of width C. H·D need not equal C.
struct GroupedWeights {
  Tensor<2> w_q;  // [H·D, C] as [out, in]
  Tensor<2> w_k;  // [G·D, C]
  Tensor<2> w_v;  // [G·D, C]
  Tensor<2> w_o;  // [C, H·D]
};

/// Draws w_q, w_k, w_v and w_o, in this order and each row by row, from a normal distribution with
/// mean 0 and variance 1 / in, so that inputs of size about 1 give q, k and v of size about 1. in
/// is the number of columns: C, and H·D for w_o. Throws as expect_groups does.
GroupedWeights draw_grouped_weights(std::size_t C, std::size_t H, std::size_t G, std::size_t D,
                                    Random& random);

/// How many parameters the four weights have: 2·C·D·(H + G).
std::size_t grouped_parameters(std::size_t C, std::size_t H, std::size_t G, std::size_t D);

/// The layer as a formula, with the four projections: [T, C] to [T, C]. Queries are made from x,
/// keys and values from memory: another sequence for cross attention, otherwise x itself. D is the
/// number of rows of w_q divided by H. Throws std::invalid_argument when shapes disagree, and as
/// expect_groups and expect_mask do.
Tensor<2> grouped_query_attention(const Tensor<2>& x,       // [T, C]
                                  const Tensor<2>& memory,  // [S, C]
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask);
Tensor<2> grouped_query_attention(const Tensor<2>& x,  // [T, C]
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask);

}  // namespace t2t
