#include "13_training/attention/attention_backward.hpp"

#include <cmath>

#include "04_causal_attention/fast/score_rule.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

// [formula]
Tensor<2> softmax_backward(const Tensor<2>& weights, const Tensor<2>& dweights) {
  expect_shape("dweights", dweights, {weights.shape(0), weights.shape(1)});
  const Tensor<1> delta = xt::sum(weights * dweights, {1});  // [T]
  return weights * (dweights - as_column(delta));            // [T, S]
}

AttentionGradients attention_backward(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                      std::size_t H, std::size_t G, const ScoreRule& rule,
                                      const Tensor<2>& dout) {
  expect_groups(H, G);
  expect_shape("dout", dout, {q.shape(0), q.shape(1)});
  const Tensor<3> queries = split_heads(q, H), douts = split_heads(dout, H);  // [H, T, D]
  const std::size_t S = k.shape(0), D = queries.shape(2);
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  const Tensor<3> keys = split_heads(k, G), values = split_heads(v, G);  // [G, S, D]
  const float factor = rule.factor_for(D);

  Tensor<3> dq = xt::zeros_like(queries), dk = xt::zeros_like(keys), dv = xt::zeros_like(values);
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    const Tensor<2> q_h = xt::view(queries, h), dout_h = xt::view(douts, h);  // [T, D]
    const Tensor<2> k_g = xt::view(keys, g), v_g = xt::view(values, g);       // [S, D]
    const Tensor<2> weights = attention_weights(q_h, k_g, rule);              // [T, S]
    Tensor<2> dscores = softmax_backward(weights, matmul_bt(dout_h, v_g));
    if (rule.cap > 0)
      dscores *= 1 - xt::square(xt::tanh(matmul_bt(q_h, k_g) * (factor / rule.cap)));

    xt::view(dq, h) = factor * matmul(dscores, k_g);
    add_matmul_at(dscores, Tensor<2>(factor * q_h), matrix(dk, g));
    add_matmul_at(weights, dout_h, matrix(dv, g));
  }
  return {merge_heads(dq), merge_heads(dk), merge_heads(dv)};
}

RopeTable backward_table(const RopeTable& table) { return {table.cos, -table.sin}; }
// [/formula]

}  // namespace t2t
