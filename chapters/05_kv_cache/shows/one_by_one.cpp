#include "05_kv_cache/shows/one_by_one.hpp"

#include "05_kv_cache/concatenated_cache.hpp"
#include "05_kv_cache/kv_cache.hpp"

namespace t2t {

Tensor<2> decode_in_place(const Tensor<2>& x,  // [T, G·D]
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

Tensor<2> decode_concatenated(const Tensor<2>& x,  // [T, G·D]
                              std::size_t G, AttentionScratch& scratch) {
  const std::size_t T = x.shape(0), D = x.shape(1) / G;
  Tensor<2> out = empty(T, G * D);
  ConcatenatedCache cache = make_concatenated_cache(G, D);
  for (std::size_t t = 0; t < T; ++t) {
    const ConstMatrix token = ConstMatrix(x).rows_from(t, 1);  // [1, G·D]
    concatenate(cache, token, token);
    attention_rows(token, concatenated_heads(cache), Mask::causal, Matrix(out).rows_from(t, 1),
                   scratch);
  }
  return out;
}

}  // namespace t2t
