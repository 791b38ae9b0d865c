#include "23_latent/backward/latent_backward.hpp"

#include "02_normalization/rms_norm.hpp"
#include "03_rope/fast/rope_rows.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "23_latent/absorbed.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

/// Zeros in the shapes of what the forward pass reads.
static LatentCoreGradients zero_gradients(const Tensor<2>& q, const Tensor<2>& rows,
                                          const Tensor<2>& w_kvb) {
  return {xt::zeros_like(q), xt::zeros_like(rows), xt::zeros_like(w_kvb)};
}

/// The rows of U_h and of Y_h among the gradients of w_kvb.
static Matrix key_gradient(LatentCoreGradients& d, const LatentSettings& settings, std::size_t h) {
  return Matrix(d.w_kvb).rows_from(h * (settings.N + settings.Dv), settings.N);
}
static Matrix value_gradient(LatentCoreGradients& d, const LatentSettings& settings,
                             std::size_t h) {
  return Matrix(d.w_kvb).rows_from(h * (settings.N + settings.Dv) + settings.N, settings.Dv);
}

// [plain]
LatentCoreGradients attend_latent_backward(const Tensor<2>& q, const Tensor<2>& rows,
                                           const Tensor<2>& w_kvb, const LatentSettings& settings,
                                           const Tensor<2>& dheads) {
  expect_attendable(q, rows, w_kvb, settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("dheads", dheads, {q.shape(0), H * Dv});
  const ConstMatrix c = ConstMatrix(rows).cols_from(0, K);  // [S, K]
  const ScoreRule rule = latent_rule(settings);

  LatentCoreGradients d = zero_gradients(q, rows, w_kvb);
  const Matrix dc = Matrix(d.rows).cols_from(0, K), dkr = Matrix(d.rows).cols_from(K, R);
  for (std::size_t h = 0; h < H; ++h) {
    // The gradients of this head's query, keys and values.
    const LatentHead head = expand_head(q, rows, w_kvb, settings, h);
    const Tensor<2> dout = copy_of(ConstMatrix(dheads).head(h, Dv));         // [T, Dv]
    const Tensor<2> weights = attention_weights(head.q, head.k, rule);       // [T, S]
    const Tensor<2> dweights = matmul_bt(dout, head.v);                      // [T, S]
    const Tensor<2> ds = rule.factor * softmax_backward(weights, dweights);  // [T, S]
    matmul(ds, head.k, Matrix(d.q).head(h, N + R));
    Tensor<2> dk = xt::zeros_like(head.k), dv = xt::zeros_like(head.v);  // [S, N+R], [S, Dv]
    add_matmul_at(ds, head.q, dk);
    add_matmul_at(weights, dout, dv);

    // Keys and values were made from c, and kʳ belongs to all heads.
    const ConstMatrix dkn = ConstMatrix(dk).cols_from(0, N);  // [S, N]
    add_matmul(dkn, key_matrix(w_kvb, settings, h), dc);
    add_matmul(dv, value_matrix(w_kvb, settings, h), dc);
    add_rows(ConstMatrix(dk).cols_from(N, R), dkr);
    add_matmul_at(dkn, c, key_gradient(d, settings, h));
    add_matmul_at(dv, c, value_gradient(d, settings, h));
  }
  return d;
}
// [/plain]

LatentCoreGradients attend_absorbed_backward(const Tensor<2>& q, const Tensor<2>& rows,
                                             const Tensor<2>& w_kvb, const LatentSettings& settings,
                                             const Tensor<2>& dheads) {
  expect_attendable(q, rows, w_kvb, settings);
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  expect_shape("dheads", dheads, {q.shape(0), H * Dv});
  const ConstMatrix c = ConstMatrix(rows).cols_from(0, K);        // [S, K]
  const Tensor<2> absorbed = absorb_queries(q, w_kvb, settings);  // [T, H·(K+R)]
  const ScoreRule rule = latent_rule(settings);
  const std::size_t T = q.shape(0), S = rows.shape(0);

  LatentCoreGradients d = zero_gradients(q, rows, w_kvb);
  for (std::size_t h = 0; h < H; ++h) {
    const ConstMatrix dout = ConstMatrix(dheads).head(h, Dv);               // [T, Dv]
    const Tensor<2> query = copy_of(ConstMatrix(absorbed).head(h, K + R));  // [T, K+R]
    const Tensor<2> weights = attention_weights(query, rows, rule);         // [T, S]
    Tensor<2> z = empty(T, K), dz = empty(T, K), dweights = empty(T, S);
    matmul(weights, c, z);

    // Back through the outputs, out = z·Yᵀ, and softmax.
    matmul(dout, value_matrix(w_kvb, settings, h), dz);
    add_matmul_at(dout, z, value_gradient(d, settings, h));
    matmul_bt(dz, c, dweights);
    const Tensor<2> ds = rule.factor * softmax_backward(weights, dweights);  // [T, S]

    // Back through the scores, (q̃, qʳ)·(c, kʳ), whose c are the values as well.
    add_matmul_at(ds, query, d.rows);
    add_matmul_at(weights, dz, Matrix(d.rows).cols_from(0, K));
    const Tensor<2> dquery = matmul(ds, rows);                        // [T, K+R]
    const ConstMatrix dlatent = ConstMatrix(dquery).cols_from(0, K);  // [T, K]
    const Matrix dq = Matrix(d.q).head(h, N + R);                     // [T, N+R]
    matmul_bt(dlatent, key_matrix(w_kvb, settings, h), dq.cols_from(0, N));
    add_rows(ConstMatrix(dquery).cols_from(K, R), dq.cols_from(N, R));
    add_matmul_at(ConstMatrix(q).head(h, N + R).cols_from(0, N), dlatent,
                  key_gradient(d, settings, h));
  }
  return d;
}

/// dW = dyᵀ·x for y = x·Wᵀ.
static Tensor<2> weight_gradient(const Tensor<2>& dy, const Tensor<2>& x) {
  Tensor<2> dw = xt::zeros<float>({dy.shape(1), x.shape(1)});
  add_matmul_at(dy, x, dw);
  return dw;
}

LatentGradients latent_backward(const Tensor<2>& x, const LatentWeights& weights,
                                const LatentSettings& settings, const RopeTable& rope,
                                const Tensor<2>& dy, LatentCoreBackward core) {
  const auto& [C, H, N, R, Dv, K, Q, m, pairing, eps] = settings;
  const Tensor<2> q = latent_queries(x, weights, settings, rope, 0);  // [T, H·(N+R)]
  const Tensor<2> rows = latent_rows(x, weights, settings, rope, 0);  // [T, K+R]
  expect_shape("dy", dy, {x.shape(0), C});
  LatentGradients d;
  d.weights.w_o = weight_gradient(dy, attend_latent(q, rows, weights.w_kvb, settings));
  LatentCoreGradients of_core = core(q, rows, weights.w_kvb, settings, matmul(dy, weights.w_o));
  d.weights.w_kvb = of_core.w_kvb;

  // qʳ and kʳ were rotated by positive angles.
  const RopeTable back = backward_table(rope);
  for (std::size_t h = 0; h < H; ++h)
    rope_rows(Matrix(of_core.q).cols_from(h * (N + R) + N, R), R, back, 0, pairing);
  rope_rows(Matrix(of_core.rows).cols_from(K, R), R, back, 0, pairing);

  // The latent's norm and its projection. kʳ has no norm.
  const Tensor<2> c0 = copy_of(ConstMatrix(matmul_bt(x, weights.w_kva)).cols_from(0, K));
  const Tensor<2> dc = copy_of(ConstMatrix(of_core.rows).cols_from(0, K));
  const NormGradients of_c = norm_backward(c0, {weights.kv_gain, {}}, Norm::rms, eps, dc);
  d.weights.kv_gain = of_c.weights.gain;
  xt::view(of_core.rows, xt::all(), xt::range(0, K)) = of_c.x;
  d.weights.w_kva = weight_gradient(of_core.rows, x);
  d.x = matmul(of_core.rows, weights.w_kva);

  // The queries' projections, with a norm between them if they have a rank.
  if (Q == 0) {
    d.weights.w_qb = weight_gradient(of_core.q, x);
    add_matmul(of_core.q, weights.w_qb, d.x);
    return d;
  }
  const Tensor<2> a = matmul_bt(x, weights.w_qa);  // [T, Q]
  d.weights.w_qb = weight_gradient(of_core.q, rms_norm(a, weights.q_gain, eps));
  const NormGradients of_a =
      norm_backward(a, {weights.q_gain, {}}, Norm::rms, eps, matmul(of_core.q, weights.w_qb));
  d.weights.q_gain = of_a.weights.gain;
  d.weights.w_qa = weight_gradient(of_a.x, x);
  add_matmul(of_a.x, weights.w_qa, d.x);
  return d;
}

}  // namespace t2t
