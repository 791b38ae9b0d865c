// The transformer block: attention, then a feed-forward network, each adding to what flows past.
//
//   pre-norm    x ← x + attention(norm(x))      x ← x + feed_forward(norm(x))
//   post-norm   x ← norm(x + attention(x))      x ← norm(x + feed_forward(x))
//
// It only puts chapters 02 to 07 together; of its own it has the two sums. Vaswani et al. 2017
// (post-norm); Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture"
// (pre-norm). One text at a time. Chapter 09 stacks L of these, 10 loads a real model into them.
#pragma once

#include <cstddef>
#include <functional>

#include "05_kv_cache/kv_cache.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "08_block/block_weights.hpp"
#include "08_block/trace.hpp"
#include "tensor.hpp"

namespace t2t {

/// The formula, without a cache: all tokens at once, at positions 0 … T − 1. Returns the new x.
/// Throws std::invalid_argument as block_rows does.
Tensor<2> block(const Tensor<2>& x,  // [T, C]
                const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table);  // [S, D/2] each; not read when nothing is turned

/// How a prompt's queries meet the cache: what chapter 06's grouped_attention_rows does, with the
/// same arguments and scratch memory of its own. It has to take every q that the block can make.
using PrefillAttention =
    std::function<void(ConstMatrix q, const KvCache& cache, std::size_t H, Matrix out)>;

/// Room for what a block makes on its way: made once, used by every layer at every step.
struct BlockScratch {
  std::size_t T_max, S, threads;    // what it was made for
  Tensor<2> normed;                 // [T_max, C]
  Tensor<2> q;                      // [T_max, H·D]
  Tensor<2> k;                      // [T_max, G·D]
  Tensor<2> v;                      // [T_max, G·D]
  Tensor<2> heads;                  // [T_max, H·D]
  Tensor<2> added;                  // [T_max, C]
  GroupedScratch attention;         // for T_max queries and S positions
  FeedForwardScratch feed_forward;  // gate, up [T_max, F]
  PrefillAttention prefill;         // for T > 1; empty: chapter 06's
};
/// For calls of up to T_max tokens and a cache of S positions, on as many threads as are in use
/// now. With a prefill of the caller's, the scratch of chapter 06's is made for single tokens
/// alone. Throws as expect_settings does, or when T_max or S is 0.
BlockScratch block_scratch(const BlockSettings& settings, std::size_t T_max, std::size_t S,
                           PrefillAttention prefill = {});

/// The norm that the settings name, by rows, with their eps; a model ends with one more.
void norm_rows(ConstMatrix x,  // [T, C]
               const NormWeights& norm, const BlockSettings& settings,
               Matrix y);  // [T, C], may be x

/// The block, in place: prefill, a chunk, or one token, at positions cache.length … + T − 1.
/// Nothing is allocated. trace, if given, sees every intermediate by name, in order: (pre-norm)
/// attention_norm, q, k, v, q_turned, k_turned, heads, attention, x_plus_attention,
/// feed_forward_norm, gate (if there is one), hidden, feed_forward, x_plus_feed_forward.
/// Throws std::invalid_argument, with x and the cache untouched, when settings or weights are wrong
/// (as expect_settings and expect_weights say), x is not [T, C] or T is 0, the cache is for other
/// heads or has no room for T more, the table ends before, or the scratch is too small.
void block_rows(Matrix x,  // [T, C], the residual stream
                const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table,  // [S, D/2] each; not read when nothing is turned
                KvCache& cache,          // [G, S, D], this layer's own
                BlockScratch& scratch, const Trace& trace = {});

}  // namespace t2t
