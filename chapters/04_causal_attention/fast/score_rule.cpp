#include "04_causal_attention/fast/score_rule.hpp"

#include "04_causal_attention/softmax.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

Tensor<2> attention_weights(const Tensor<2>& q, const Tensor<2>& k, const ScoreRule& rule) {
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1);
  if (rule == ScoreRule(rule.mask)) return attention_weights(q, k, rule.mask);
  expect_shape("k", k, {S, D});
  const Tensor<2> mask_added = attention_mask(T, S, rule.mask);  // [T, S]
  Tensor<2> scores = matmul_bt(q, k) * rule.factor_for(D);       // [T, S]
  if (rule.cap > 0) scores = rule.cap * xt::tanh(scores / rule.cap);
  scores += mask_added;
  return softmax(scores);
}

Tensor<2> attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                    const ScoreRule& rule) {
  if (rule == ScoreRule(rule.mask)) return attention(q, k, v, rule.mask);
  expect_shape("v", v, {k.shape(0), q.shape(1)});
  return matmul(attention_weights(q, k, rule), v);  // [T, D]
}

float cap_row(Row products, const ScoreRule& rule, std::size_t D) {
  const float factor = rule.factor_for(D), cap = rule.cap;
  if (cap == 0) return factor;
  const auto capped = [=](Lanes product) { return cap * xsimd::tanh(product * (factor / cap)); };
  map_row(products, capped, ConstRow(products));
  return 1;
}

}  // namespace t2t
