// Grouped-query attention: H query heads share G heads of keys and values, H / G to a group.
//
//   out[h] = softmax(q[h]·k[g]ᵀ / √D + mask)·v[g]        g = h / (H / G), rounded down
//
// G = H is multi-head attention (chapter 04), G = 1 multi-query attention: one component serves
// all three. Ainslie et al. 2023, "GQA"; Shazeer 2019, "Fast Transformer Decoding". A query head
// reads its group where it lies; nothing is copied per head. Here is the formula; grouped_rows.hpp
// has the kernel. Chapter 08's block is built on it, chapter 10's model has H = 9 and G = 3.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming both, unless G is at least 1 and divides H.
void expect_groups(std::size_t H, std::size_t G);

/// The group whose keys and values query head h reads: neighbours share.
std::size_t group_of(std::size_t h, std::size_t H, std::size_t G);

/// The formula. Throws std::invalid_argument when shapes disagree, and as expect_groups and
/// expect_mask do.
Tensor<2> grouped_query_attention(const Tensor<2>& q,  // [T, H·D]
                                  const Tensor<2>& k,  // [S, G·D]
                                  const Tensor<2>& v,  // [S, G·D]
                                  std::size_t H, std::size_t G, Mask mask);

/// Of a layer of width C. H·D need not be C.
struct GroupedWeights {
  Tensor<2> w_q;  // [H·D, C] as [out, in]
  Tensor<2> w_k;  // [G·D, C]
  Tensor<2> w_v;  // [G·D, C]
  Tensor<2> w_o;  // [C, H·D]
};

/// Numbers from N(0, 1/in), so that rows of size about 1 give q, k and v of size about 1.
GroupedWeights draw_grouped_weights(std::size_t C, std::size_t H, std::size_t G, std::size_t D,
                                    Random& random);

/// Numbers in the four weights: 2·C·D·(H + G).
std::size_t grouped_parameters(std::size_t C, std::size_t H, std::size_t G, std::size_t D);

/// The layer as a formula: [T, C] to [T, C]. The tokens of x ask; those of memory are looked at:
/// another text's for cross attention, x itself otherwise. Throws as above.
Tensor<2> grouped_query_attention(const Tensor<2>& x,       // [T, C]
                                  const Tensor<2>& memory,  // [S, C]
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask);
Tensor<2> grouped_query_attention(const Tensor<2>& x,  // [T, C]
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask);

}  // namespace t2t
