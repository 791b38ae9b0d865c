// What must be true of the backward pass of attention with sinks.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "25_sinks/in_double.hpp"
#include "25_sinks/sink_backward.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::sink_backward_test {

using std::size_t;

TEST_CASE(
    "by hand: for scores 0 and ln 2, a sink of ln 3 and values 6 and 12, the sink gets -2.5") {
  const float ln2 = std::log(2.0f), ln3 = std::log(3.0f);
  const Tensor<2> scores = {{0, ln2}}, dweights = {{6, 12}}, want = {{1.0f / 6, 7.0f / 3}};
  const SinkScoreGradients d = softmax_with_sink_backward(softmax_with_sink(scores, ln3), dweights);
  // r = 6/6 + 12/3 = 5: 1/6·(6 − 5), 1/3·(12 − 5), and −1/2·5.
  CHECK(all_close(d.scores, want, 12 * 16 * 0x1p-24));
  CHECK(d.sink == doctest::Approx(-2.5).epsilon(1e-6));

  const Tensor<2> q = {{1}}, k = {{0}, {ln2}}, v = {{6}, {12}}, dout = {{1}};
  const Tensor<1> sinks = {ln3};
  const SinkGradients all = sink_attention_backward(q, k, v, sinks, 1, Mask::none, dout);
  const Tensor<2> dq = {{7 * ln2 / 3}}, dk = {{1.0f / 6}, {7.0f / 3}},
                  dv = {{1.0f / 6}, {1.0f / 3}};
  CHECK(all_close(all.q, dq, 12 * 16 * 0x1p-24));
  CHECK(all_close(all.k, dk, 12 * 16 * 0x1p-24));
  CHECK(all_close(all.v, dv, 16 * 0x1p-24));
  CHECK(all_close(all.sinks, Tensor<1>{-2.5f}, 12 * 16 * 0x1p-24));
}

TEST_CASE("each gradient is that of finite differences in float64, for heads in groups") {
  constexpr size_t T = 5, S = 7, D = 6, H = 4, G = 2;
  const Tensor<2> q = numbers(1, 2, 0, T, H * D), k = numbers(2, 2, 0, S, G * D);
  const Tensor<2> v = numbers(3, 2, 0, S, G * D), dout = numbers(4, 2, 0, T, H * D);
  const Tensor<1> sinks = {-1, 0, 1, 2.5f};
  for (const Mask mask : {Mask::causal, Mask::sliding(3)}) {
    const SinkGradients d = sink_attention_backward(q, k, v, sinks, G, mask, dout);
    Doubles q_d(q), k_d(k), v_d(v), sinks_d(sinks);
    const auto loss = [&] { return dot(dout, sinks_in_double(q_d, k_d, v_d, sinks_d, G, mask)); };
    // A gradient is a sum over T·H/G queries of products over S keys and D channels, of at most 8.
    const double bound = rounding(T * S + D, 8);
    CHECK(all_close(d.q, by_differences(q_d, loss), bound));
    CHECK(all_close(d.k, by_differences(k_d, loss), bound));
    CHECK(all_close(d.v, by_differences(v_d, loss), bound));
    CHECK(all_close(as_matrix(d.sinks), by_differences(sinks_d, loss), bound));
  }
}

TEST_CASE("a sink's gradient is the sum over its queries, and that of -r·p for each") {
  const Tensor<2> q = numbers(1, 2, 0, 3, 4), k = numbers(2, 2, 0, 5, 4);
  const Tensor<2> v = numbers(3, 2, 0, 5, 4), dout = numbers(4, 2, 0, 3, 4);
  const Tensor<1> sinks = {0.5f};
  const float all = sink_attention_backward(q, k, v, sinks, 1, Mask::none, dout).sinks(0);
  const Tensor<2> out = sink_attention(q, k, v, 0.5f, Mask::none);
  const SinkWeights weights = softmax_with_sink(attention_scores(q, k, Mask::none), 0.5f);
  double sum = 0, by_rows = 0;
  for (size_t t = 0; t < 3; ++t) {
    double r = 0;  // also dout·out
    for (size_t d = 0; d < 4; ++d) r += double(dout(t, d)) * double(out(t, d));
    sum -= r * double(weights.sink(t));
    by_rows += double(
        sink_attention_backward(rows_of(q, t, 1), k, v, sinks, 1, Mask::none, rows_of(dout, t, 1))
            .sinks(0));
  }
  CHECK(std::abs(sum - double(all)) < rounding(3 * 5, 4));
  CHECK(std::abs(by_rows - double(all)) < rounding(3 * 5, 4));
}

TEST_CASE("a sink of -infinity gets no gradient, and other shapes are refused") {
  const Tensor<2> q = numbers(1, 2, 0, 3, 4), k = numbers(2, 2, 0, 5, 4);
  const Tensor<1> none = {-std::numeric_limits<float>::infinity()}, one = {0};
  CHECK(sink_attention_backward(q, k, k, none, 1, Mask::none, q).sinks(0) == 0);
  REFUSES(sink_attention_backward(q, k, k, one, 1, Mask::none, k),
          "dout: wanted shape [3, 4], got [5, 4]");
  REFUSES(sink_attention_backward(q, k, q, one, 1, Mask::none, q),
          "v: wanted shape [5, 4], got [3, 4]");
  REFUSES(softmax_with_sink_backward({zeros(2, 3), zeros(2)}, zeros(2, 4)),
          "dweights: wanted shape [2, 3], got [2, 4]");
  REFUSES(softmax_with_sink_backward({zeros(2, 3), zeros(3)}, zeros(2, 3)),
          "weights.sink: wanted shape [2], got [3]");
}

}  // namespace t2t::sink_backward_test
