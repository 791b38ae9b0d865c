// What must be true of attention with a sink, and of the four forms that compute it.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "04_causal_attention/multi_head.hpp"
#include "04_causal_attention/softmax.hpp"
#include "25_sinks/in_double.hpp"
#include "25_sinks/sink_attention.hpp"
#include "25_sinks/sink_forms.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::sinks_test {

using std::size_t;

static constexpr float infinity = std::numeric_limits<float>::infinity();
static const float ln2 = std::log(2.0f), ln3 = std::log(3.0f);

TEST_CASE("by hand: scores 0 and ln 2 beside a sink of ln 3 get 1/6 and 1/3, the sink 1/2") {
  const Tensor<2> scores = {{0, ln2}}, want = {{1.0f / 6, 1.0f / 3}};
  const SinkWeights weights = softmax_with_sink(scores, ln3);
  CHECK(all_close(weights.keys, want, 8 * 0x1p-24));
  CHECK(all_close(weights.sink, Tensor<1>{0.5f}, 8 * 0x1p-24));
}

TEST_CASE("by hand: values 6 and 12 then give 5, where attention without a sink gives 10") {
  const Tensor<2> q = {{1}}, k = {{0}, {ln2}}, v = {{6}, {12}}, five = {{5}}, ten = {{10}};
  const double bound = 16 * 8 * 0x1p-24;
  CHECK(all_close(sink_attention(q, k, v, ln3, Mask::none), five, bound));
  CHECK(all_close(extra_key_attention(q, k, v, ln3, Mask::none), five, bound));
  CHECK(all_close(rescaled_attention(q, k, v, ln3, Mask::none), five, bound));
  CHECK(all_close(online_sink_attention(q, k, v, ln3, Mask::none), five, bound));
  CHECK(all_close(online_sink_attention(q, k, v, ln3, Mask::none, 2), five, bound));
  CHECK(all_close(sink_attention(q, k, v, -infinity, Mask::none), ten, bound));
}

TEST_CASE("by hand: a sink is a score as it stands, not divided by the root of D") {
  // One key of score 0 beside a sink of ln 3 gets 1/4, at every width.
  const Tensor<2> q = zeros(1, 4), k = q + 1.0f, v = 8.0f * k, want = 2.0f * k;
  CHECK(all_close(sink_attention(q, k, v, ln3, Mask::causal), want, 64 * 0x1p-24));
  CHECK(all_close(rescaled_attention(q, k, v, ln3, Mask::causal), want, 64 * 0x1p-24));
}

struct Sizes {
  size_t T, S, D;
};
static const std::vector<Sizes> odd_sizes = {{1, 1, 1}, {3, 7, 5}, {5, 5, 16}, {4, 70, 8}};

TEST_CASE("all four forms equal attention with a sink in float64, at odd sizes and with windows") {
  for (const Sizes& size : odd_sizes)
    for (const Mask mask : {Mask::none, Mask::causal, Mask::sliding(3)})
      for (const float sink : {-3.0f, 0.7f, 5.0f}) {
        const auto [T, S, D] = size;
        const Tensor<2> q = numbers(1, 2, 0, T, D), k = numbers(2, 2, 0, S, D);
        const Tensor<2> v = numbers(3, 2, 0, S, D);
        const Tensor<1> sinks = {sink};
        const Tensor<2> want =
            as_floats(sinks_in_double(Doubles(q), Doubles(k), Doubles(v), Doubles(sinks), 1, mask));
        const double bound = sink_bound(S, D);
        CHECK(all_close(sink_attention(q, k, v, sink, mask), want, bound));
        CHECK(all_close(extra_key_attention(q, k, v, sink, mask), want, bound));
        CHECK(all_close(rescaled_attention(q, k, v, sink, mask), want, bound));
        CHECK(all_close(online_sink_attention(q, k, v, sink, mask), want, bound));
      }
}

TEST_CASE("a cache in several splits, some of them empty, gives what one split gives") {
  const Tensor<2> q = numbers(1, 2, 0, 3, 6), k = numbers(2, 2, 0, 11, 6);
  const Tensor<2> v = numbers(3, 2, 0, 11, 6);
  for (const Mask mask : {Mask::causal, Mask::sliding(4)}) {
    const Tensor<2> want = online_sink_attention(q, k, v, 1.5f, mask);
    for (const size_t splits : {2, 3, 5, 20})
      CHECK(all_close(online_sink_attention(q, k, v, 1.5f, mask, splits), want, sink_bound(11, 6)));
  }
}

TEST_CASE("the keys' weights and the sink's sum to 1, and a sink of -infinity is none") {
  const Tensor<2> scores = numbers(4, 12, 0, 5, 33);
  for (const float sink : {-20.0f, 0.0f, 7.5f}) {
    const SinkWeights weights = softmax_with_sink(scores, sink);
    const Tensor<1> sums = xt::sum(weights.keys, {1}) + weights.sink;
    CHECK(all_close(sums, Tensor<1>(zeros(5) + 1.0f), 2 * rounding(34, 1)));
  }
  const SinkWeights none = softmax_with_sink(scores, -infinity);
  CHECK(all_close(none.keys, softmax(scores), 2 * rounding(33, 1)));
  CHECK(all_close(none.sink, zeros(5), 0));
}

TEST_CASE("scores and sinks of hundreds stay finite, in every form") {
  const Tensor<2> scores = {{190, 200, -infinity}};
  const SinkWeights high = softmax_with_sink(scores, 200);
  const Tensor<2> halves = {{0, 0.5f, 0}};
  CHECK(all_close(high.keys, halves, 3e-5));  // e^-10 is 4.5e-5, of which half
  const SinkWeights higher = softmax_with_sink(scores, 500),
                    lower = softmax_with_sink(scores, -500);
  CHECK(all_close(higher.keys, zeros(1, 3), 0));
  CHECK(all_close(higher.sink, Tensor<1>{1}, 0));
  CHECK(all_close(lower.sink, zeros(1), 0));
  CHECK(lower.keys(0, 1) > 0.99f);
  const Tensor<2> q = {{1}}, k = {{0}, {ln2}}, v = {{6}, {12}};
  for (const float sink : {-200.0f, 200.0f}) {
    const Tensor<2> want = zeros(1, 1) + (sink < 0 ? 10.0f : 0.0f);
    CHECK(all_close(sink_attention(q, k, v, sink, Mask::none), want, 2e-5));
    CHECK(all_close(extra_key_attention(q, k, v, sink, Mask::none), want, 2e-5));
    CHECK(all_close(rescaled_attention(q, k, v, sink, Mask::none), want, 2e-5));
    CHECK(all_close(online_sink_attention(q, k, v, sink, Mask::none, 2), want, 2e-5));
  }
}

TEST_CASE("a row whose keys are all masked gives everything to the sink") {
  const Tensor<2> scores = {{-infinity, -infinity}, {0, 0}};
  const SinkWeights weights = softmax_with_sink(scores, 0);
  const Tensor<2> want = {{0, 0}, {1.0f / 3, 1.0f / 3}};
  CHECK(all_close(weights.keys, want, 8 * 0x1p-24));
  CHECK(weights.sink(0) == 1);
  CHECK(log_sum_exp(scores)(0) == -infinity);
  CHECK(log_sum_exp(scores)(1) == doctest::Approx(ln2));
  CHECK_THROWS_AS(softmax_with_sink(scores, -infinity), std::invalid_argument);
}

TEST_CASE("each query head has its own sink, and reads its group's keys and values") {
  constexpr size_t T = 3, S = 5, D = 4, H = 6, G = 2;
  const Tensor<2> q = numbers(1, 2, 0, T, H * D), k = numbers(2, 2, 0, S, G * D);
  const Tensor<2> v = numbers(3, 2, 0, S, G * D);
  const Tensor<1> sinks = {-2, -1, 0, 1, 2, 3};
  const Tensor<2> want = as_floats(
      sinks_in_double(Doubles(q), Doubles(k), Doubles(v), Doubles(sinks), G, Mask::causal));
  CHECK(all_close(grouped_sink_attention(q, k, v, sinks, G, Mask::causal), want, sink_bound(S, D)));
}

TEST_CASE("what is no score, or of another shape, is refused") {
  const Tensor<2> q = zeros(2, 4), k = zeros(3, 4), v = zeros(3, 4), other = zeros(3, 5);
  REFUSES(sink_attention(q, k, v, infinity, Mask::none),
          "sink, a score: wanted a finite number or -infinity, got inf");
  for (const float sink : {infinity, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_THROWS_AS(sink_attention(q, k, v, sink, Mask::none), std::invalid_argument);
    CHECK_THROWS_AS(extra_key_attention(q, k, v, sink, Mask::none), std::invalid_argument);
    CHECK_THROWS_AS(rescaled_attention(q, k, v, sink, Mask::none), std::invalid_argument);
    CHECK_THROWS_AS(online_sink_attention(q, k, v, sink, Mask::none), std::invalid_argument);
  }
  REFUSES(sink_attention(q, k, other, 0, Mask::none), "v: wanted shape [3, 4], got [3, 5]");
  REFUSES(extra_key_attention(q, k, other, 0, Mask::none), "v: wanted shape [3, 4], got [3, 5]");
  REFUSES(online_sink_attention(q, k, other, 0, Mask::none), "v: wanted shape [3, 4], got [3, 5]");
  REFUSES(online_sink_attention(q, k, v, 0, Mask::none, 0),
          "splits of the keys: wanted at least 1, got 0");
  REFUSES(softmax_with_sink(zeros(2, 0), 0), "S, the number of keys: wanted at least 1, got 0");
  REFUSES(grouped_sink_attention(q, k, v, zeros(3), 2, Mask::none),
          "groups: wanted G key and value heads that divide H query heads, got H = 3, G = 2");
  REFUSES(grouped_sink_attention(q, other, v, zeros(2), 2, Mask::none),
          "k: wanted shape [3, 4], got [3, 5]");
}

}  // namespace t2t::sinks_test
