#include "24_delta_rule/qwen3_next/gated_attention.hpp"

#include <algorithm>

#include "02_normalization/rms_norm.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"

namespace t2t {

// [attention]
Tensor<2> ready_heads(ConstMatrix x, const Tensor<1>& gain, const GatedAttentionSettings& settings,
                      const RopeTable& rope, std::size_t start) {
  const std::size_t D = settings.D, R = settings.R;
  Tensor<2> ready = empty(x.rows, x.cols);  // [T, heads·D]
  for (std::size_t from = 0; from < x.cols; from += D) {
    xt::view(ready, xt::all(), xt::range(from, from + D)) =
        rms_norm(copy_of(x.cols_from(from, D)), gain, settings.eps);
    rope_rows(Matrix(ready).cols_from(from, R), R, rope, start, Pairing::halves);
  }
  return ready;
}

GatedHeads gated_heads(const Tensor<2>& x, const GatedAttentionWeights& weights,
                       const GatedAttentionSettings& settings, const RopeTable& rope,
                       std::size_t start) {
  const std::size_t T = x.shape(0), H = settings.H, D = settings.D;
  const Tensor<2> both = matmul_bt(x, weights.w_q);  // [T, 2·H·D]: of each head q, then its gate
  Tensor<2> q = empty(T, H * D), z = empty(T, H * D);
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t h = 0; h < H; ++h) {
      std::copy_n(&both(t, 2 * h * D), D, &q(t, h * D));
      std::copy_n(&both(t, (2 * h + 1) * D), D, &z(t, h * D));
    }
  return {ready_heads(q, weights.q_gain, settings, rope, start), z,
          ready_heads(matmul_bt(x, weights.w_k), weights.k_gain, settings, rope, start),
          matmul_bt(x, weights.w_v)};
}

Tensor<2> through_gate(const Tensor<2>& heads, const Tensor<2>& z, const Weight& w_o) {
  const Tensor<2> gated = heads / (1 + xt::exp(-z));  // [T, H·D]
  return matmul_bt(gated, w_o);
}

Tensor<2> gated_attention(const Tensor<2>& x, const GatedAttentionWeights& weights,
                          const GatedAttentionSettings& settings, const RopeTable& rope) {
  expect_gated_call(x, weights, settings);
  const GatedHeads in = gated_heads(x, weights, settings, rope, 0);
  return through_gate(
      grouped_query_attention(in.q, in.k, in.v, settings.H, settings.G, Mask::causal), in.z,
      weights.w_o);
}

Tensor<2> gated_attention_step(const Tensor<2>& x, const GatedAttentionWeights& weights,
                               const GatedAttentionSettings& settings, const RopeTable& rope,
                               KvCache& cache, GroupedScratch& scratch) {
  expect_gated_call(x, weights, settings);
  const auto& [C, H, G, D, R, eps] = settings;
  const std::size_t T = x.shape(0);
  const GatedHeads in = gated_heads(x, weights, settings, rope, cache.length);
  expect_room(scratch, T, cache.length + T, H, G, D);
  append(cache, in.k, in.v);
  Tensor<2> heads = empty(T, H * D);  // [T, H·D]
  grouped_attention_rows(in.q, cached_heads(cache), Mask::causal, heads, scratch);
  return through_gate(heads, in.z, weights.w_o);
}
// [/attention]

}  // namespace t2t
