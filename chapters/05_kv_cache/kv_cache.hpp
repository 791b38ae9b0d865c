// The KV cache keeps the keys and values of all tokens so far, so that only a new token's key and
// value are computed.
//
//   keys[g, length + t] = rotate(k[g, t], position + t)      values[g, length + t] = v[g, t]
//   out = softmax(q·keysᵀ / √D + mask)·values              position = start + length
//
// Under a causal mask no later token changes a token's keys and values, so they need to be computed
// only once. Pope et al. 2022, "Efficiently Scaling Transformer Inference". This cache is for one
// layer and one sequence, in 32-bit floats, with memory for all S positions from the start. It has
// G heads of keys; how many query heads read them is up to the attention kernel. Chapter 08 makes a
// cache for each layer of each sequence.
#pragma once

#include <cstddef>

#include "03_rope/rope.hpp"
#include "04_causal_attention/fast/attention_rows.hpp"
#include "tensor.hpp"

namespace t2t {

/// The keys and values of one layer. The storage is made once, for S positions; rows 0 … length − 1
/// are filled. It holds one sequence; a model has such a cache for each layer of each sequence.
struct KvCache {
  Tensor<3> keys;      // [G, S, D]
  Tensor<3> values;    // [G, S, D]
  std::size_t length;  // rows filled, at most S, and so the position of the next token
};

/// Makes an empty cache for the positions 0 … S − 1. Its elements are not set, so that an operating
/// system may provide the memory only when rows are filled. Throws std::invalid_argument unless G,
/// S and D are at least 1.
KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D);

/// Throws std::invalid_argument unless k and v are [T, G·D] with T at least 1, the cache's values
/// have the shape of its keys, and length + T is at most S.
void expect_appendable(const KvCache& cache, ConstMatrix k, ConstMatrix v);

/// Writes T rows of keys and values from row `length` on, then adds T to `length`. Allocates
/// nothing. Throws as expect_appendable does, before anything is written.
void append(KvCache& cache,
            ConstMatrix k,   // [T, G·D], already rotated if the model uses RoPE
            ConstMatrix v);  // [T, G·D]

/// The same for keys that are not rotated yet: they are written unrotated, then RoPE rotates them
/// in place, in the cache, each by its own position. k itself is not changed, and nothing is
/// allocated. The caller rotates the queries, by the length that it read before this call.
/// Throws as expect_appendable and chapter 03's expect_table do, before anything is written: also
/// for an odd D, for a table made for another D, and for one that ends before the last of the T
/// positions.
void append_rotated(KvCache& cache,
                    ConstMatrix k,           // [T, G·D], not rotated
                    ConstMatrix v,           // [T, G·D]
                    const RopeTable& table,  // [positions, D/2] each
                    Pairing pairing);

/// Empties the cache: the next position is 0 again. The old values stay in memory, unread.
void reset(KvCache& cache);

/// Keeps the positions 0 … position − 1 and drops the others: for a sequence that is edited from
/// `position` on. Throws std::invalid_argument when position is above length.
void truncate(KvCache& cache, std::size_t position);

/// Views of the filled part, [length, D] per head: what chapter 04's attention_rows and the kernels
/// of later chapters read, in place. Under a causal mask their T queries belong to the last T
/// positions, so append those tokens' keys and values first. For the kernel S, the number of keys,
/// is then `length`. The views are valid until the next append, and no longer than the cache lives
/// in its place. Throws std::invalid_argument when `length` is above the cache's S, or when values
/// and keys differ in shape. (An empty cache gives views of no rows, which expect_mask refuses.)
KeyValueHeads cached_heads(const KvCache& cache);

/// Bytes of storage, filled or not.
std::size_t bytes(const KvCache& cache);

/// Bytes of the caches of all L layers for one sequence of S positions: 2·L·G·S·D·number_bytes.
std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes);

}  // namespace t2t
