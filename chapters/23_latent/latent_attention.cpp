#include "23_latent/latent_attention.hpp"

#include <algorithm>
#include <cmath>

#include "02_normalization/rms_norm.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_latent(const LatentSettings& settings) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect(C >= 1, "C, the width of the layer", "at least 1", C);
  expect(H >= 1, "H, the query heads", "at least 1", H);
  expect(N >= 1, "N, a head's channels without RoPE", "at least 1", N);
  expect(R >= 2 && R % 2 == 0, "R, a head's rotated channels", "an even number of at least 2", R);
  expect(Dv >= 1, "Dv, the channels of a value", "at least 1", Dv);
  expect(K >= 1, "K, the rank of the latent", "at least 1", K);
  expect(m > 0 && std::isfinite(m), "m, the factor of the scores", "a finite number above 0", m);
  expect(eps >= 0 && std::isfinite(eps), "eps", "a finite number of at least 0", eps);
}

void expect_latent(const LatentWeights& weights, const LatentSettings& settings) {
  expect_latent(settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("w_qa", weights.w_qa, {Q, Q > 0 ? C : 0});
  expect_shape("q_gain", weights.q_gain, {Q});
  expect_shape("w_qb", weights.w_qb, {H * (N + R), Q > 0 ? Q : C});
  expect_shape("w_kva", weights.w_kva, {K + R, C});
  expect_shape("kv_gain", weights.kv_gain, {K});
  expect_shape("w_kvb", weights.w_kvb, {H * (N + Dv), K});
  expect_shape("w_o", weights.w_o, {C, H * Dv});
}

LatentWeights draw_latent_weights(const LatentSettings& settings, Random& random) {
  expect_latent(settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const auto draw = [&](std::size_t out, std::size_t in) {
    return random.normal<2>({out, in}, 1 / std::sqrt(float(in)));
  };
  LatentWeights weights;
  weights.w_qa = Q > 0 ? draw(Q, C) : empty(0, 0);
  weights.q_gain = xt::ones<float>({Q});
  weights.w_qb = draw(H * (N + R), Q > 0 ? Q : C);
  weights.w_kva = draw(K + R, C);
  weights.kv_gain = xt::ones<float>({K});
  weights.w_kvb = draw(H * (N + Dv), K);
  weights.w_o = draw(C, H * Dv);
  return weights;
}

std::size_t latent_parameters(const LatentSettings& settings) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const std::size_t queries = Q > 0 ? Q * C + Q + H * (N + R) * Q : H * (N + R) * C;
  return queries + (K + R) * C + K + H * (N + Dv) * K + C * H * Dv;
}

float yarn_m(double factor, double mscale_all_dim) {
  expect(factor >= 1 && std::isfinite(factor), "factor", "a finite number of at least 1", factor);
  return float(1 + 0.1 * mscale_all_dim * std::log(factor));
}

// [formula]
ScoreRule latent_rule(const LatentSettings& settings) {
  return {Mask::causal, settings.m * settings.m / std::sqrt(float(settings.query_width()))};
}

ConstMatrix key_matrix(ConstMatrix w_kvb, const LatentSettings& settings, std::size_t h) {
  return w_kvb.rows_from(h * (settings.N + settings.Dv), settings.N);
}
ConstMatrix value_matrix(ConstMatrix w_kvb, const LatentSettings& settings, std::size_t h) {
  return w_kvb.rows_from(h * (settings.N + settings.Dv) + settings.N, settings.Dv);
}

Tensor<2> latent_queries(const Tensor<2>& x, const LatentWeights& weights,
                         const LatentSettings& settings, const RopeTable& rope, std::size_t start) {
  expect_latent(weights, settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("x", x, {x.shape(0), C});
  Tensor<2> a = x;  // [T, Q], or [T, C]
  if (Q > 0) a = rms_norm(matmul_bt(x, weights.w_qa), weights.q_gain, eps);
  Tensor<2> q = matmul_bt(a, weights.w_qb);  // [T, H·(N+R)]
  for (std::size_t h = 0; h < H; ++h)
    rope_rows(Matrix(q).cols_from(h * (N + R) + N, R), R, rope, start, pairing);
  return q;
}

Tensor<2> latent_rows(const Tensor<2>& x, const LatentWeights& weights,
                      const LatentSettings& settings, const RopeTable& rope, std::size_t start) {
  expect_latent(weights, settings);
  const std::size_t K = settings.K, R = settings.R;
  expect_shape("x", x, {x.shape(0), settings.C});
  Tensor<2> rows = matmul_bt(x, weights.w_kva);  // [T, K+R]: c⁰ and kʳ
  const Tensor<2> c0 = copy_of(ConstMatrix(rows).cols_from(0, K));
  xt::view(rows, xt::all(), xt::range(0, K)) = rms_norm(c0, weights.kv_gain, settings.eps);
  rope_rows(Matrix(rows).cols_from(K, R), R, rope, start, settings.pairing);
  return rows;
}
// [/formula]

// [plain]
LatentHead expand_head(ConstMatrix q, ConstMatrix rows, ConstMatrix w_kvb,
                       const LatentSettings& settings, std::size_t h) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const ConstMatrix c = rows.cols_from(0, K);  // [S, K]
  LatentHead head{copy_of(q.head(h, N + R)), empty(rows.rows, N + R), empty(rows.rows, Dv)};
  matmul_bt(c, key_matrix(w_kvb, settings, h), Matrix(head.k).cols_from(0, N));
  for (std::size_t s = 0; s < rows.rows; ++s)  // kʳ is the same for all heads
    std::ranges::copy(rows.row(s).subspan(K), row(head.k, s).subspan(N).begin());
  matmul_bt(c, value_matrix(w_kvb, settings, h), head.v);
  return head;
}

Tensor<2> attend_latent(const Tensor<2>& q, const Tensor<2>& rows, const Tensor<2>& w_kvb,
                        const LatentSettings& settings) {
  expect_attendable(q, rows, w_kvb, settings);
  const std::size_t T = q.shape(0), H = settings.H, Dv = settings.Dv;
  Tensor<2> heads = empty(T, H * Dv);  // [T, H·Dv]
  for (std::size_t h = 0; h < H; ++h) {
    const LatentHead head = expand_head(q, rows, w_kvb, settings, h);
    matmul(attention_weights(head.q, head.k, latent_rule(settings)), head.v,
           Matrix(heads).head(h, Dv));
  }
  return heads;
}
// [/plain]

void expect_attendable(ConstMatrix q, ConstMatrix rows, ConstMatrix w_kvb,
                       const LatentSettings& settings) {
  expect_latent(settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("q", q, {q.rows, H * (N + R)});
  expect_shape("rows", rows, {rows.rows, K + R});
  expect_shape("w_kvb", w_kvb, {H * (N + Dv), K});
  expect_mask(q.rows, rows.rows, Mask::causal);
}

Tensor<2> latent_attention(const Tensor<2>& x, const LatentWeights& weights,
                           const LatentSettings& settings, const RopeTable& rope) {
  const Tensor<2> q = latent_queries(x, weights, settings, rope, 0);               // [T, H·(N+R)]
  const Tensor<2> rows = latent_rows(x, weights, settings, rope, 0);               // [T, K+R]
  return matmul_bt(attend_latent(q, rows, weights.w_kvb, settings), weights.w_o);  // [T, C]
}

}  // namespace t2t
