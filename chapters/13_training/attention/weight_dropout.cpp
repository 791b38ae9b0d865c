#include "13_training/attention/weight_dropout.hpp"

#include <algorithm>

#include "04_causal_attention/fast/score_rule.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "linalg.hpp"
#include "random.hpp"

namespace t2t {

/// m of all heads: the same in the forward and in the backward pass.
static Tensor<3> factors(const DroppedAttention& call, std::size_t T) {
  Tensor<3> m = xt::ones<float>({call.H, T, T});
  const Dropout of_sequence{call.dropout.p, seed_of(SeedOf::row, call.dropout.pass, call.sequence)};
  dropout_rows(of_sequence, Part::heads, call.layer, Matrix(m.data(), call.H * T, T, T));
  return m;
}

static void fill_with_0(Matrix x) {
  for (std::size_t t = 0; t < x.rows; ++t) std::ranges::fill(x.row(t), 0.0f);
}

void dropped_attention(const DroppedAttention& call, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                       Matrix out) {
  const std::size_t D = q.cols / call.H;
  const Tensor<3> m = factors(call, q.rows);
  for (std::size_t h = 0; h < call.H; ++h) {
    const std::size_t g = group_of(h, call.H, call.G);
    const Tensor<2> q_h = copy_of(q.head(h, D)), k_g = copy_of(k.head(g, D));
    const Tensor<2> kept = attention_weights(q_h, k_g, call.rule) * xt::view(m, h);  // [T, T]
    matmul(kept, v.head(g, D), out.head(h, D));
  }
}

void dropped_attention_backward(const DroppedAttention& call, const AttentionPass& sequence,
                                const AttentionGradientRows& gradients) {
  const std::size_t D = sequence.q.cols / call.H;
  const float factor = call.rule.factor_for(D);
  const Tensor<3> m = factors(call, sequence.q.rows);
  fill_with_0(gradients.k), fill_with_0(gradients.v);
  for (std::size_t h = 0; h < call.H; ++h) {
    const std::size_t g = group_of(h, call.H, call.G);
    const Tensor<2> q_h = copy_of(sequence.q.head(h, D)), k_g = copy_of(sequence.k.head(g, D));
    const Tensor<2> v_g = copy_of(sequence.v.head(g, D)), dout = copy_of(sequence.dout.head(h, D));
    const Tensor<2> weights = attention_weights(q_h, k_g, call.rule);  // [T, T]
    const Tensor<2> kept = weights * xt::view(m, h);                   // [T, T]
    const Tensor<2> dweights = matmul_bt(dout, v_g) * xt::view(m, h);  // [T, T]
    Tensor<2> dscores = factor * softmax_backward(weights, dweights);  // [T, T]
    if (call.rule.cap > 0)
      dscores *= 1 - xt::square(xt::tanh(matmul_bt(q_h, k_g) * (factor / call.rule.cap)));
    matmul(dscores, k_g, gradients.q.head(h, D));
    add_matmul_at(dscores, q_h, gradients.k.head(g, D));
    add_matmul_at(kept, dout, gradients.v.head(g, D));
  }
}

}  // namespace t2t
