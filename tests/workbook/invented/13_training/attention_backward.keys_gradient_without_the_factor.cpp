#include "13_training/attention/attention_backward.hpp"

#include <cmath>
#include <numeric>

#include "04_causal_attention/multi_head.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> softmax_backward(const Tensor<2>& weights, const Tensor<2>& dweights) {
  const std::size_t T = weights.shape(0), S = weights.shape(1);
  expect_shape("dweights", dweights, {T, S});
  Tensor<2> dscores = empty(T, S);
  for (std::size_t t = 0; t < T; ++t) {
    const ConstRow p = row(weights, t), dp = row(dweights, t);
    const float mean = std::inner_product(p.begin(), p.end(), dp.begin(), 0.0f);
    for (std::size_t s = 0; s < S; ++s) dscores(t, s) = p[s] * (dp[s] - mean);
  }
  return dscores;
}

AttentionGradients attention_backward(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                      std::size_t H, std::size_t G, const ScoreRule& rule,
                                      const Tensor<2>& dout) {
  expect_groups(H, G);
  expect_shape("dout", dout, {q.shape(0), q.shape(1)});
  expect_divides(q.shape(1), H);
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1) / H;
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  const float factor = rule.factor_for(D);

  AttentionGradients d{xt::zeros<float>({T, H * D}), xt::zeros<float>({S, G * D}),
                       xt::zeros<float>({S, G * D})};
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    const Tensor<2> queries = copy_of(ConstMatrix(q).head(h, D));
    const Tensor<2> keys = copy_of(ConstMatrix(k).head(g, D));
    const Tensor<2> values = copy_of(ConstMatrix(v).head(g, D));
    const Tensor<2> above = copy_of(ConstMatrix(dout).head(h, D));

    const Tensor<2> p = attention_weights(queries, keys, rule);
    Tensor<2> dscores = softmax_backward(p, matmul_bt(above, values));
    if (rule.cap > 0) {
      const Tensor<2> products = matmul_bt(queries, keys);
      for (std::size_t i = 0; i < dscores.size(); ++i) {
        const float bent = std::tanh(factor * products.data()[i] / rule.cap);
        dscores.data()[i] *= 1 - bent * bent;
      }
    }

    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t s = 0; s < S; ++s)
        for (std::size_t i = 0; i < D; ++i) {
          d.q(t, h * D + i) += factor * dscores(t, s) * keys(s, i);
          d.k(s, g * D + i) += dscores(t, s) * queries(t, i);  // WRONG
          d.v(s, g * D + i) += p(t, s) * above(t, i);
        }
  }
  return d;
}

RopeTable backward_table(const RopeTable& table) {
  RopeTable back = table;
  for (float& sine : back.sin) sine = -sine;
  return back;
}

}  // namespace t2t
