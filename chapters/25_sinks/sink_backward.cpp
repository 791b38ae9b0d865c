#include "25_sinks/sink_backward.hpp"

#include <cmath>

#include "04_causal_attention/multi_head.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

SinkScoreGradients softmax_with_sink_backward(const SinkWeights& weights,
                                              const Tensor<2>& dweights) {
  expect_shape("dweights", dweights, {weights.keys.shape(0), weights.keys.shape(1)});
  expect_shape("weights.sink", weights.sink, {weights.keys.shape(0)});
  const Tensor<1> r = xt::sum(weights.keys * dweights, {1});  // [T]
  float dsink = 0;
  for (std::size_t t = 0; t < r.size(); ++t) dsink -= weights.sink(t) * r(t);
  return {weights.keys * (dweights - as_column(r)), dsink};
}

SinkGradients sink_attention_backward(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                      const Tensor<1>& sinks, std::size_t G, Mask mask,
                                      const Tensor<2>& dout) {
  const std::size_t H = sinks.size();
  expect_groups(H, G);
  expect_shape("dout", dout, {q.shape(0), q.shape(1)});
  const Tensor<3> queries = split_heads(q, H), douts = split_heads(dout, H);  // [H, T, D]
  const std::size_t S = k.shape(0), D = queries.shape(2);
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  const Tensor<3> keys = split_heads(k, G), values = split_heads(v, G);  // [G, S, D]
  const float factor = 1 / std::sqrt(float(D));

  Tensor<3> dq = xt::zeros_like(queries), dk = xt::zeros_like(keys), dv = xt::zeros_like(values);
  Tensor<1> dsinks = xt::zeros_like(sinks);
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    const Tensor<2> q_h = xt::view(queries, h), dout_h = xt::view(douts, h);  // [T, D]
    const Tensor<2> k_g = xt::view(keys, g), v_g = xt::view(values, g);       // [S, D]
    const SinkWeights weights = softmax_with_sink(attention_scores(q_h, k_g, mask), sinks(h));
    const auto [dscores, dsink] = softmax_with_sink_backward(weights, matmul_bt(dout_h, v_g));

    xt::view(dq, h) = factor * matmul(dscores, k_g);
    add_matmul_at(dscores, Tensor<2>(factor * q_h), matrix(dk, g));
    add_matmul_at(weights.keys, dout_h, matrix(dv, g));
    dsinks(h) = dsink;
  }
  return {merge_heads(dq), merge_heads(dk), merge_heads(dv), dsinks};
}

}  // namespace t2t
