// KV cache: the keys and values of every token so far, kept: a new token brings only its own.
//
//   keys[g, length + t] = turn(k[g, t], length + t)      values[g, length + t] = v[g, t]
//   out = softmax(q·keysᵀ / √D + mask)·values            q: T queries, the last of all positions
//
// Nothing that comes later changes a token's keys and values under a causal mask, so they are made
// once. Pope et al. 2022, "Efficiently Scaling Transformer Inference". One layer of one text; as
// many query heads as key heads (06 shares them), 32-bit numbers (12), one run of memory (15 cuts
// it into pages). Chapter 08's block keeps one.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "tensor.hpp"

namespace t2t {

/// One layer's keys and values. Storage is made once; positions from `length` on are not filled.
struct KvCache {
  Tensor<3> keys;      // [G, S, D]
  Tensor<3> values;    // [G, S, D]
  std::size_t length;  // positions filled, at most S
};

/// An empty cache for S positions, all zeros. Throws std::invalid_argument unless G, S and D are at
/// least 1.
KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D);

/// Writes T positions from `length` on, then advances it by T. Throws std::invalid_argument, before
/// anything is written, when T is 0, a shape is wrong, or the T positions run past S.
void append(KvCache& cache,
            ConstMatrix k,   // [T, G·D], already turned, if it is to be
            ConstMatrix v);  // [T, G·D]

/// The same, each key turned by RoPE on its way in, once, at its own position. (Queries are turned
/// by their caller: rope_rows with start = length before this call.) Neither allocates: keys are
/// turned where they lie in the cache. Throws also as rope_rows does, before anything is written: D
/// odd, a table for another D, or one that ends before length + T.
void append_turned(KvCache& cache,
                   ConstMatrix k,           // [T, G·D], not turned
                   ConstMatrix v,           // [T, G·D]
                   const RopeTable& table,  // [S, D/2] each
                   Pairing pairing);

/// Forgets everything: the next position is 0.
void reset(KvCache& cache);

/// Keeps positions 0 … position − 1: for a text that is edited from `position` on. Throws
/// std::invalid_argument when that is beyond `length`.
void truncate(KvCache& cache, std::size_t position);

/// The filled part of group g, read in place: [length, D]. Valid until the cache is moved or dies.
/// Throws std::invalid_argument when there is no group g.
ConstMatrix cached_keys(const KvCache& cache, std::size_t g);
ConstMatrix cached_values(const KvCache& cache, std::size_t g);

/// Bytes of storage, filled or not.
std::size_t bytes(const KvCache& cache);

/// What all layers' caches take, of numbers of this many bytes: 2·L·G·S·D·number_bytes.
std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes);

/// The kernel for prefill, chunks and single tokens alike: H = G heads. The queries belong to the
/// last T positions of the cache, so append their keys and values first. Allocates nothing.
/// Throws std::invalid_argument when shapes disagree, scratch is too small, and as expect_mask
/// does.
void cached_attention_rows(ConstMatrix q,  // [T, H·D]
                           const KvCache& cache,
                           Mask mask,   // causal; none for keys of another text
                           Matrix out,  // [T, H·D]; must not overlap q or the cache
                           AttentionScratch& scratch);  // made for at least T and `length`

}  // namespace t2t
