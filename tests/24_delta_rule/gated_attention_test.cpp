// What must be true of attention with a gate and RoPE on a part of each head.
#include "24_delta_rule/qwen3_next/gated_attention.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "13_training/differences.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::gated_attention_test {

using std::size_t;

static GatedAttentionWeights some_weights(const GatedAttentionSettings& s) {
  const auto matrix = [&](unsigned key, size_t rows, size_t cols) {
    return Weight(numbers(key, 2 / std::sqrt(float(cols)), 0, rows, cols));
  };
  return {.w_q = matrix(1, 2 * s.H * s.D, s.C),
          .w_k = matrix(2, s.G * s.D, s.C),
          .w_v = matrix(3, s.G * s.D, s.C),
          .q_gain = numbers(4, 1, 1, s.D),
          .k_gain = numbers(5, 1, 1, s.D),
          .w_o = matrix(6, s.C, s.H * s.D)};
}
static Doubles product_bt(const Doubles& x, const Doubles& w) {
  Doubles y(x.rows, w.rows);
  for (size_t t = 0; t < x.rows; ++t)
    for (size_t o = 0; o < w.rows; ++o)
      for (size_t i = 0; i < x.cols; ++i) y(t, o) += x(t, i) * w(o, i);
  return y;
}
static RopeTable table_of(const GatedAttentionSettings& s, size_t S) {
  return rope_table(S, rope_frequencies(s.R, 50));
}

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

/// At position 1, pair 0 makes a quarter turn and pair 1 a half turn.
static RopeTable turns(size_t pairs) {
  const double pi = std::acos(-1.0);
  return rope_table(2, pairs == 1 ? Frequencies{pi / 2} : Frequencies{pi / 2, pi});
}

TEST_CASE("by hand: each head gets its norm and its gain, then four of its six channels rotate") {
  // The root mean square is 2 in both heads: (2, 1, ½, ½, ½, ½) and six times 1, then the gain.
  // Channel 0 pairs with 2, and 1 with 3. A quarter turn makes (a, b) (−b, a).
  const GatedAttentionSettings s{.C = 1, .H = 2, .G = 1, .D = 6, .R = 4};
  const Tensor<2> x = {{4, 2, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}};
  const Tensor<1> gain = {2, 1, 1, 1, 1, 3};
  // eps changes the root by an eighth of 1e-6 of it. A norm, a gain and a turn round eight times.
  const double bound = 4 * (1e-6 / 8 + 8 * u);
  CHECK(all_close(ready_heads(x, gain, s, turns(2), 0),
                  Tensor<2>{{4, 1, 0.5f, 0.5f, 0.5f, 1.5f, 2, 1, 1, 1, 1, 3}}, bound));
  CHECK(all_close(ready_heads(x, gain, s, turns(2), 1),
                  Tensor<2>{{-0.5f, -1, 4, -0.5f, 0.5f, 1.5f, -1, -1, 2, -1, 1, 3}}, bound));
}

TEST_CASE("by hand: of each head W_q makes a query and then its gate, which stays as it is") {
  // (1, 7), (7, −1) and (−1, 7) have root mean square 5. At position 1, (a, b) becomes (−b, a).
  const GatedAttentionSettings s{.C = 1, .H = 2, .G = 1, .D = 2, .R = 2};
  const GatedAttentionWeights w{
      .w_q = Weight(Tensor<2>{{1}, {7}, {20}, {30}, {7}, {-1}, {40}, {50}}),
      .w_k = Weight(Tensor<2>{{-1}, {7}}),
      .w_v = Weight(Tensor<2>{{8}, {9}}),
      .q_gain = {1, 1},
      .k_gain = {10, 10},
      .w_o = Weight(zeros(1, 4))};
  const GatedHeads in = gated_heads({{1}}, w, s, turns(1), 1);
  // eps changes the root by 1e-6 / 50 of it.
  const double bound = 1e-6 / 50 + 8 * u;
  CHECK(all_close(in.q, Tensor<2>{{-1.4f, 0.2f, 0.2f, 1.4f}}, 2 * bound));
  CHECK(all_close(in.z, Tensor<2>{{20, 30, 40, 50}}, 0));
  CHECK(all_close(in.k, Tensor<2>{{-14, -2}}, 14 * bound));
  CHECK(all_close(in.v, Tensor<2>{{8, 9}}, 0));
}

TEST_CASE("by hand: gates of 3/4 and 1/2") {
  const Tensor<2> z = {{std::log(3.0f), 0}};
  CHECK(all_close(through_gate({{3, 4}}, z, Weight(Tensor<2>{{1, 10}, {1, 0}})),
                  Tensor<2>{{2.25f + 20, 2.25f}}, 8 * u * 22.25));
}

TEST_CASE("by hand: a gate of one token, whose value passes attention unchanged") {
  // v = 3·x, and the gate is sigmoid(ln 3·x) = 3/4 for x = 1. One key has all of the weight.
  const GatedAttentionSettings s{.C = 1, .H = 1, .G = 1, .D = 2, .R = 2};
  const float log3 = std::log(3.0f);
  const GatedAttentionWeights w{.w_q = Weight(Tensor<2>{{1}, {2}, {log3}, {0}}),
                                .w_k = Weight(Tensor<2>{{5}, {6}}),
                                .w_v = Weight(Tensor<2>{{3}, {4}}),
                                .q_gain = {1, 1},
                                .k_gain = {1, 1},
                                .w_o = Weight(Tensor<2>{{1, 10}})};
  CHECK(all_close(gated_attention({{1}}, w, s, table_of(s, 1)), Tensor<2>{{2.25f + 20}}, 1e-5));
}

TEST_CASE("by hand: a step gives 1/4 of its weight to a cached key a quarter turn away") {
  // q and k are (1, 1) and, at position 1, (−1, 1): equal there, and at a right angle to the cached
  // key. The gain of q makes the score √2·ln 3/√2 = ln 3. Values are (3·x, 4·x), the gates ½.
  const GatedAttentionSettings s{.C = 1, .H = 1, .G = 1, .D = 2, .R = 2};
  const float gain = std::log(3.0f) / std::sqrt(2.0f);
  const GatedAttentionWeights w{.w_q = Weight(Tensor<2>{{1}, {1}, {0}, {0}}),
                                .w_k = Weight(Tensor<2>{{1}, {1}}),
                                .w_v = Weight(Tensor<2>{{3}, {4}}),
                                .q_gain = {gain, gain},
                                .k_gain = {1, 1},
                                .w_o = Weight(Tensor<2>{{1, 10}})};
  KvCache cache = make_kv_cache(1, 2, 2);
  GroupedScratch scratch(1, 2, 1, 2);
  // eps changes q and k, and so the score, by at most 2e-6 of it, and the outputs by less.
  const double bound = 2e-6 + 16 * u;
  CHECK(all_close(gated_attention_step({{1}}, w, s, turns(1), cache, scratch),
                  Tensor<2>{{1.5f + 20}}, 21.5 * bound));
  CHECK(all_close(gated_attention_step({{3}}, w, s, turns(1), cache, scratch),
                  Tensor<2>{{3.75f + 50}}, 53.75 * bound));
  CHECK(cache.length == 2);
}

/// One output in float64, element by element.
static Tensor<2> in_double(const Tensor<2>& x, const GatedAttentionWeights& w,
                           const GatedAttentionSettings& s) {
  const size_t T = x.shape(0), D = s.D, R = s.R;
  const Doubles in(x), q = product_bt(in, Doubles(w.w_q.floats())),
                       k = product_bt(in, Doubles(w.w_k.floats())),
                       v = product_bt(in, Doubles(w.w_v.floats()));
  const auto head = [&](const Doubles& of, size_t t, size_t from, const Tensor<1>& gain) {
    double squares = 0;
    for (size_t d = 0; d < D; ++d) squares += of(t, from + d) * of(t, from + d);
    std::vector<double> y(D);
    for (size_t d = 0; d < D; ++d)
      y[d] = of(t, from + d) / std::sqrt(squares / double(D) + s.eps) * double(gain(d));
    for (size_t i = 0; i < R / 2; ++i) {
      const double angle = double(t) * std::pow(50.0, -2 * double(i) / double(R)), a = y[i],
                   b = y[i + R / 2];
      y[i] = a * std::cos(angle) - b * std::sin(angle);
      y[i + R / 2] = a * std::sin(angle) + b * std::cos(angle);
    }
    return y;
  };
  Doubles heads(T, s.H * D);
  for (size_t h = 0; h < s.H; ++h)
    for (size_t t = 0; t < T; ++t) {
      const size_t g = h / (s.H / s.G);
      const std::vector<double> query = head(q, t, 2 * h * D, w.q_gain);
      double sum = 0;
      std::vector<double> out(D);
      for (size_t j = 0; j <= t; ++j) {
        const std::vector<double> key = head(k, j, g * D, w.k_gain);
        double score = 0;
        for (size_t d = 0; d < D; ++d) score += query[d] * key[d] / std::sqrt(double(D));
        sum += std::exp(score);
        for (size_t d = 0; d < D; ++d) out[d] += std::exp(score) * v(j, g * D + d);
      }
      for (size_t d = 0; d < D; ++d)
        heads(t, h * D + d) = out[d] / sum / (1 + std::exp(-q(t, (2 * h + 1) * D + d)));
    }
  const Doubles y = product_bt(heads, Doubles(w.w_o.floats()));
  Tensor<2> floats = empty(T, s.C);
  for (size_t t = 0; t < T; ++t)
    for (size_t c = 0; c < s.C; ++c) floats(t, c) = float(y(t, c));
  return floats;
}

// Outputs are below 4. Sums are 11 terms long at most, and five follow one another; the scores'
// exponentials turn their errors, of scores up to 20, into errors of the weights.
static const double near = 0x1p-23 * 11 * 5 * 20;

TEST_CASE("the formula and cached steps are the sums in float64, at odd sizes") {
  for (const GatedAttentionSettings& s :
       {GatedAttentionSettings{.C = 6, .H = 4, .G = 2, .D = 5, .R = 2, .eps = 1e-2f},
        GatedAttentionSettings{.C = 7, .H = 3, .G = 1, .D = 6, .R = 6},
        GatedAttentionSettings{.C = 5, .H = 2, .G = 2, .D = 7, .R = 4}}) {
    const size_t T = 11;
    const GatedAttentionWeights w = some_weights(s);
    const Tensor<2> x = numbers(7, 2, 0, T, s.C), want = in_double(x, w, s);
    const RopeTable rope = table_of(s, T);
    CHECK(all_close(gated_attention(x, w, s, rope), want, near));
    for (const std::vector<size_t>& lengths :
         {std::vector<size_t>{11}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {4, 1, 6}}) {
      KvCache cache = make_kv_cache(s.G, T, s.D);
      GroupedScratch scratch(T, T, s.H, s.D);
      size_t t = 0;
      for (const size_t count : lengths) {
        CHECK(all_close(gated_attention_step(rows_of(x, t, count), w, s, rope, cache, scratch),
                        rows_of(want, t, count), near));
        t += count;
      }
      CHECK(cache.length == T);
    }
  }
}

TEST_CASE("by hand: a gate of 200 is 1, although e^200 is no float, and a gate of -200 is 0") {
  CHECK(all_close(through_gate({{3, 4}}, {{200, -200}}, Weight(Tensor<2>{{1, 10}, {2, 20}})),
                  Tensor<2>{{3, 6}}, 0));  // nothing is rounded
}

TEST_CASE("gates far below 0 close a head, and gates far above 0 open it") {
  const GatedAttentionSettings s{.C = 2, .H = 1, .G = 1, .D = 2, .R = 2};
  const Tensor<2> x = {{1, 0.5f}, {1, -0.5f}};
  const auto with_gates_of = [&](float z) {
    GatedAttentionWeights w = some_weights(s);
    w.w_q = Tensor<2>{{1, 0}, {0, 1}, {z, 0}, {z, 0}};
    return gated_attention(x, w, s, table_of(s, 2));
  };
  CHECK(all_close(with_gates_of(-200), zeros(2, 2), 0));
  // 1 + e^(−20) is 1 in floats.
  CHECK(all_close(with_gates_of(200), with_gates_of(20), 0));
}

TEST_CASE("sizes and shapes that can't be are refused by name, and the cache stays as it was") {
  const GatedAttentionSettings right{.C = 6, .H = 4, .G = 2, .D = 5, .R = 4};
  const auto refused = [&](auto change, const char* message) {
    GatedAttentionSettings s = right;
    change(s);
    REFUSES(expect_gated(s), message);
  };
  refused([](auto& s) { s.R = 3; },
          "R, the channels that RoPE rotates: wanted an even number from 2 to D = 5, got 3");
  refused([](auto& s) { s.R = 6; },
          "R, the channels that RoPE rotates: wanted an even number from 2 to D = 5, got 6");
  refused([](auto& s) { s.C = 0; }, "C, the width of the layer: wanted at least 1, got 0");
  refused([](auto& s) { s.eps = 0; }, "eps: wanted a finite number above 0, got 0");
  GatedAttentionWeights w = some_weights(right);
  KvCache cache = make_kv_cache(2, 3, 5);
  GroupedScratch scratch(3, 3, 4, 5);
  CHECK_THROWS_AS(gated_attention_step(zeros(4, 6), w, right, table_of(right, 4), cache, scratch),
                  std::invalid_argument);
  CHECK(cache.length == 0);
  GroupedScratch small(1, 1, 4, 5);
  CHECK_THROWS_AS(gated_attention_step(zeros(3, 6), w, right, table_of(right, 3), cache, small),
                  std::invalid_argument);
  CHECK(cache.length == 0);
  w.w_q = zeros(20, 6);
  REFUSES(gated_attention(zeros(2, 6), w, right, table_of(right, 2)),
          "w_q: wanted shape [40, 6], got [20, 6]");
  REFUSES(gated_attention_step(zeros(2, 6), w, right, table_of(right, 2), cache, scratch),
          "w_q: wanted shape [40, 6], got [20, 6]");
  CHECK(cache.length == 0);
}

}  // namespace t2t::gated_attention_test
