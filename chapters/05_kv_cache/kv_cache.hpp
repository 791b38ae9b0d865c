// KV cache: the keys and values of every token so far, kept: a new token brings only its own.
//
//   keys[g, length + t] = turn(k[g, t], length + t)      values[g, length + t] = v[g, t]
//   out = softmax(q·keysᵀ / √D + mask)·values            q: T queries, the last of all positions
//
// Nothing that comes later changes a token's keys and values under a causal mask, so they are made
// once. Pope et al. 2022, "Efficiently Scaling Transformer Inference". One layer of one text; as
// many query heads as key heads (06 shares them), 32-bit numbers (12), one run of memory (15 cuts
// it into pages). Chapter 08's attention keeps one for each layer of each text.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "tensor.hpp"

namespace t2t {

/// One layer's keys and values. Storage is made once; rows from `length` on are not filled.
struct KvCache {
  Tensor<3> keys;         // [G, S, D]
  Tensor<3> values;       // [G, S, D]
  std::size_t length;     // rows filled, at most S
  std::size_t start = 0;  // the position of row 0: later for a cache that holds a text's end only
};

/// An empty cache for S positions from `start` on, all zeros. Throws std::invalid_argument unless
/// G, S and D are at least 1.
KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D, std::size_t start = 0);

/// Where the next token stands: start + length.
std::size_t next_position(const KvCache& cache);

/// Throws std::invalid_argument unless T is at least 1, k and v are [T, G·D], and T more positions
/// have room.
void expect_appendable(const KvCache& cache, ConstMatrix k, ConstMatrix v);

/// Writes T rows from `length` on, then advances it by T. Throws as expect_appendable does, before
/// anything is written.
void append(KvCache& cache,
            ConstMatrix k,   // [T, G·D], already turned, if it is to be
            ConstMatrix v);  // [T, G·D]

/// The same, each key turned by RoPE on its way in, once, at its own position. (Queries are turned
/// by their caller: rope_rows from next_position before this call.) Neither allocates: keys are
/// turned where they lie in the cache. Throws also as rope_rows does, before anything is written: D
/// odd, a table for another D, or one that ends before the last of the T positions.
void append_turned(KvCache& cache,
                   ConstMatrix k,           // [T, G·D], not turned
                   ConstMatrix v,           // [T, G·D]
                   const RopeTable& table,  // [S, D/2] each
                   Pairing pairing);

/// Forgets everything: the next position is `start` again.
void reset(KvCache& cache);

/// Keeps positions start … position − 1: for a text that is edited from `position` on. Throws
/// std::invalid_argument unless position is from start to next_position.
void truncate(KvCache& cache, std::size_t position);

/// The filled part, [length, D] a head, read in place by the kernels of attention: chapter 04's
/// attention_rows and those of later chapters. The queries belong to the last T positions, so
/// append their keys and values first. Valid until the cache grows, is moved or dies.
KeyValueHeads cached_heads(const KvCache& cache);

/// Bytes of storage, filled or not.
std::size_t bytes(const KvCache& cache);

/// What all layers' caches take, of numbers of this many bytes: 2·L·G·S·D·number_bytes.
std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes);

}  // namespace t2t
