// Decode by both kinds of cache: one token a call, appended and attended to. For this chapter's
// program and bench.
#pragma once

#include "05_kv_cache/joined_cache.hpp"
#include "05_kv_cache/kv_cache.hpp"

namespace t2t {

/// T tokens whose queries, keys and values are all x, into a cache that was made once for T.
inline Tensor<2> decode_in_place(const Tensor<2>& x,  // [T, G·D]
                                 std::size_t G, AttentionScratch& scratch) {
  const std::size_t T = x.shape(0), D = x.shape(1) / G;
  Tensor<2> out = empty(T, G * D);
  KvCache cache = make_kv_cache(G, T, D);
  for (std::size_t t = 0; t < T; ++t) {
    const ConstMatrix token = ConstMatrix(x).rows_from(t, 1);  // [1, G·D]
    append(cache, token, token);
    attention_rows(token, cached_heads(cache), Mask::causal, Matrix(out).rows_from(t, 1), scratch);
  }
  return out;
}

/// The same into a cache that is joined anew for each token.
inline Tensor<2> decode_joined(const Tensor<2>& x,  // [T, G·D]
                               std::size_t G, AttentionScratch& scratch) {
  const std::size_t T = x.shape(0), D = x.shape(1) / G;
  Tensor<2> out = empty(T, G * D);
  JoinedCache cache = make_joined_cache(G, D);
  for (std::size_t t = 0; t < T; ++t) {
    const ConstMatrix token = ConstMatrix(x).rows_from(t, 1);  // [1, G·D]
    join(cache, token, token);
    attention_rows(token, joined_heads(cache), Mask::causal, Matrix(out).rows_from(t, 1), scratch);
  }
  return out;
}

}  // namespace t2t
