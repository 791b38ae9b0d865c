// Grouped-query attention: H query heads share G heads of keys and values, H / G to a group.
//
//   out[h] = softmax(q[h]·k[g]ᵀ / √D + mask)·v[g]        g = h / (H / G), rounded down
//
// G = H is multi-head attention (chapter 04), G = 1 multi-query attention: one component serves
// all three. Ainslie et al. 2023, "GQA"; Shazeer 2019, "Fast Transformer Decoding". A query head
// reads its group where it lies; nothing is copied per head. Chapter 08's block is built on it,
// chapter 10's model has H = 9 and G = 3.
#pragma once

#include "04_causal_attention/attention.hpp"
#include "05_kv_cache/kv_cache.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument, naming both, unless G is at least 1 and divides H.
void expect_groups(std::size_t H, std::size_t G);

/// Throws std::invalid_argument unless q, k and v are [T, H·D], [S, G·D] and [S, G·D] for some D,
/// and as expect_groups and expect_mask do; returns that D.
std::size_t expect_shared(ConstMatrix q, ConstMatrix k, ConstMatrix v, std::size_t H, std::size_t G,
                          Mask mask);
/// The same of q and the filled part of a cache: causal, H·D columns and G heads of keys and
/// values.
void expect_shared(ConstMatrix q, const KvCache& cache, std::size_t H);

/// The group whose keys and values query head h reads: neighbours share.
std::size_t group_of(std::size_t h, std::size_t H, std::size_t G);

/// The formula. Throws std::invalid_argument when shapes disagree, and as expect_groups and
/// expect_mask do.
Tensor<2> grouped_query_attention(const Tensor<2>& q,  // [T, H·D]
                                  const Tensor<2>& k,  // [S, G·D]
                                  const Tensor<2>& v,  // [S, G·D]
                                  std::size_t H, std::size_t G, Mask mask);

/// Keys (or values) with a copy of its group for each query head: [S, G·D] to [S, H·D]. With it
/// chapter 04 computes the same; here it is only the oracle, since it costs the memory that sharing
/// saves.
Tensor<2> repeat_kv(const Tensor<2>& x, std::size_t H, std::size_t G);

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

/// The layer as a formula: [T, C] to [T, C].
Tensor<2> grouped_query_attention(const Tensor<2>& x,  // [T, C]
                                  const GroupedWeights& weights, std::size_t H, std::size_t G,
                                  Mask mask);

/// Scratch memory for grouped_attention_rows: make it once, use it for every layer and call.
struct GroupedScratch {
  Tensor<2> scores;     // [threads, floats for one task]
  Tensor<2> stretches;  // [H·P, D]: what each of P stretches of keys gives a head
  Tensor<2> log_sums;   // [H, P]: and how much that counts

  /// Room for calls of up to T queries and S keys, on as many threads as are in use now.
  GroupedScratch(std::size_t T, std::size_t S, std::size_t H, std::size_t D);
};
/// Throws std::invalid_argument unless it has room for a call of T queries and S keys, on as many
/// threads as are in use now.
void expect_room(const GroupedScratch& scratch, std::size_t T, std::size_t S, std::size_t H,
                 std::size_t G, std::size_t D);

/// The kernel, causal: the queries belong to the last T positions of the cache, so append their
/// keys and values first. One query goes the way of decode_attention.hpp, several go chapter 04's.
/// Allocates nothing. Throws std::invalid_argument when shapes disagree or scratch is too small,
/// and as expect_groups and expect_mask do.
void grouped_attention_rows(ConstMatrix q,  // [T, H·D]
                            const KvCache& cache, std::size_t H,
                            Matrix out,  // [T, H·D]; must not overlap q or the cache
                            GroupedScratch& scratch);

/// The same without a cache: keys and values as they come from their projections.
void grouped_attention_rows(ConstMatrix q,  // [T, H·D]
                            ConstMatrix k,  // [S, G·D]
                            ConstMatrix v,  // [S, G·D]
                            std::size_t H, std::size_t G, Mask mask,
                            Matrix out,  // [T, H·D]; must not overlap q, k or v
                            GroupedScratch& scratch);

}  // namespace t2t
