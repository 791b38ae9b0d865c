#include "25_sinks/sink_forms.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "04_causal_attention/softmax.hpp"
#include "11_flash_attention/online_softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

static void expect_sink(float sink) {
  expect(sink < infinity, "sink, a score", "a finite number or -infinity", sink);  // not for NaN
}

Tensor<2> extra_key_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                              float sink, Mask mask) {
  expect_sink(sink);
  const std::size_t T = q.shape(0), S = k.shape(0), D = k.shape(1);
  expect_shape("v", v, {S, D});
  Tensor<2> scores = xt::ones<float>({T, S + 1}) * sink;  // [T, S + 1]
  Tensor<2> values = xt::zeros<float>({S + 1, D});        // [S + 1, D]
  xt::view(scores, xt::all(), xt::range(0, S)) = attention_scores(q, k, mask);
  xt::view(values, xt::range(0, S)) = v;
  return matmul(softmax(scores), values);  // [T, D]
}

Tensor<1> log_sum_exp(const Tensor<2>& scores) {
  const Tensor<1> highest = xt::amax(scores, {1});                        // [T]
  Tensor<1> result = xt::sum(xt::exp(scores - as_column(highest)), {1});  // [T]
  for (std::size_t t = 0; t < result.size(); ++t)
    result(t) = highest(t) == -infinity ? -infinity : highest(t) + std::log(result(t));
  return result;
}

Tensor<2> rescaled_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, float sink,
                             Mask mask) {
  expect_sink(sink);
  const Tensor<2> out = attention(q, k, v, mask);                   // [T, D]
  const Tensor<1> lse = log_sum_exp(attention_scores(q, k, mask));  // [T]
  const Tensor<1> share = 1 / (1 + xt::exp(sink - lse));            // [T]  sigmoid(lse − σ)
  return out * as_column(share);                                    // [T, D]
}

/// q·k / √D
static float score_of(ConstRow q, ConstRow k) {
  float sum = 0;
  for (std::size_t d = 0; d < q.size(); ++d) sum += q[d] * k[d];
  return sum / std::sqrt(float(q.size()));
}

Tensor<2> online_sink_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                float sink, Mask mask, std::size_t splits) {
  expect_sink(sink);
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1);
  expect_mask(T, S, mask);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  expect(splits >= 1, "splits of the keys", "at least 1", splits);
  expect_shape("k", k, {S, D});
  expect_shape("v", v, {S, D});

  const Tensor<1> no_value = xt::zeros<float>({D});
  Tensor<2> out = empty(T, D);
  for (std::size_t t = 0; t < T; ++t) {
    const KeyRange seen = keys_seen(t, T, S, mask);
    OnlineSoftmax all(D);
    take(all, sink, row(no_value));  // m = σ, l = 1, o = 0, once for all splits
    for (std::size_t p = 0; p < splits; ++p) {
      OnlineSoftmax split(D);
      const std::size_t begin = std::max(seen.begin, S * p / splits);
      const std::size_t end = std::min(seen.end, S * (p + 1) / splits);
      for (std::size_t s = begin; s < end; ++s)
        take(split, score_of(row(q, t), row(k, s)), row(v, s));
      join(all, split);
    }
    std::ranges::copy(mean(all), row(out, t).begin());
  }
  return out;
}

}  // namespace t2t
