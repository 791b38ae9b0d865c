#include "23_latent/absorbed.hpp"

#include <algorithm>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> absorb_queries(const Tensor<2>& q, const Tensor<2>& w_kvb,
                         const LatentSettings& settings) {
  expect_latent(settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const std::size_t T = q.shape(0);
  expect_shape("q", q, {T, H * (N + R)});
  expect_shape("w_kvb", w_kvb, {H * (N + Dv), K});
  Tensor<2> absorbed = empty(T, H * (K + R));  // [T, H·(K+R)]
  for (std::size_t h = 0; h < H; ++h) {
    const ConstMatrix from = ConstMatrix(q).head(h, N + R);  // [T, N+R]
    const Matrix to = Matrix(absorbed).head(h, K + R);       // [T, K+R]
    matmul(from.cols_from(0, N), key_matrix(w_kvb, settings, h), to.cols_from(0, K));
    for (std::size_t t = 0; t < T; ++t)  // qʳ stays as it is
      std::ranges::copy(from.row(t).subspan(N), to.row(t).subspan(K).begin());
  }
  return absorbed;
}

Tensor<2> expand_outputs(const Tensor<2>& z, const Tensor<2>& w_kvb,
                         const LatentSettings& settings) {
  expect_latent(settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("z", z, {z.shape(0), H * K});
  expect_shape("w_kvb", w_kvb, {H * (N + Dv), K});
  Tensor<2> heads = empty(z.shape(0), H * Dv);  // [T, H·Dv]
  for (std::size_t h = 0; h < H; ++h)
    matmul_bt(ConstMatrix(z).head(h, K), value_matrix(w_kvb, settings, h),
              Matrix(heads).head(h, Dv));
  return heads;
}

Tensor<2> attend_absorbed(const Tensor<2>& q, const Tensor<2>& rows, const Tensor<2>& w_kvb,
                          const LatentSettings& settings) {
  expect_attendable(q, rows, w_kvb, settings);
  const std::size_t H = settings.H, K = settings.K, width = settings.row_width();
  const Tensor<2> absorbed = absorb_queries(q, w_kvb, settings);  // [T, H·(K+R)]
  Tensor<2> z = empty(q.shape(0), H * K);                         // [T, H·K]
  for (std::size_t h = 0; h < H; ++h) {
    const Tensor<2> of_head = copy_of(ConstMatrix(absorbed).head(h, width));  // [T, K+R]
    matmul(attention_weights(of_head, rows, latent_rule(settings)),
           ConstMatrix(rows).cols_from(0, K), Matrix(z).head(h, K));
  }
  return expand_outputs(z, w_kvb, settings);
}

}  // namespace t2t
