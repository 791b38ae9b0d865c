// What must be true of softmax and attention, in both forms: the formula and the row kernel.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "04_causal_attention/fast/attention_rows.hpp"
#include "04_causal_attention/fast/softmax_rows.hpp"
#include "04_causal_attention/multi_head.hpp"
#include "files/npy.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/additions.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/attention_in_double.hpp"
#include "support/refuses.hpp"

// How failed comparisons show a mask, and a range of keys.
template <>
struct doctest::StringMaker<t2t::Tensor<2>> {
  static doctest::String convert(const t2t::Tensor<2>& x) {
    std::string text;
    for (std::size_t t = 0; t < x.shape(0); ++t)
      text += fmt::format("{}{{{}}}", t > 0 ? ", " : "", fmt::join(t2t::row(x, t), ", "));
    return text.c_str();
  }
};
template <>
struct doctest::StringMaker<t2t::KeyRange> {
  static doctest::String convert(const t2t::KeyRange& keys) {
    return fmt::format("keys {} to {}", keys.begin, keys.end).c_str();
  }
};

namespace t2t::causal_attention_test {

static constexpr float infinity = std::numeric_limits<float>::infinity();
static constexpr double u = 0x1p-24;  // half a unit in the last place of 1: one rounding

static Tensor<2> draw(std::size_t rows, std::size_t cols, std::size_t seed, float deviation = 1) {
  return Random(seed).normal<2>({rows, cols}, deviation);
}

/// All heads through the kernel.
static Tensor<2> by_rows(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, std::size_t H,
                         Mask mask) {
  Tensor<2> out = empty(q.shape(0), q.shape(1));
  AttentionScratch scratch(q.shape(0), k.shape(0));
  attention_rows(q, side_by_side(k, v, H), mask, out, scratch);
  return out;
}
/// All heads through the formula, one after the other: [T, H·D].
static Tensor<2> by_formula(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                            std::size_t H, Mask mask) {
  const Tensor<3> q3 = split_heads(q, H), k3 = split_heads(k, H), v3 = split_heads(v, H);
  Tensor<3> heads = empty(H, q3.shape(1), q3.shape(2));
  for (std::size_t h = 0; h < H; ++h) {
    const auto head = [h](const Tensor<3>& x) { return Tensor<2>(xt::view(x, h)); };
    xt::view(heads, h) = attention(head(q3), head(k3), head(v3), mask);
  }
  return merge_heads(heads);
}
static Tensor<2> rows_of_softmax(Tensor<2> x) {
  softmax_rows(x);
  return x;
}

// The roundings of a sum of n terms go up as often as down, so they come to about √n/2 · u of the
// largest partial sum. A score is such a sum of D terms, and its error moves the weights by as
// much; out is one of S terms. Partial sums reach some 4, and we allow twice that.
static double bound(std::size_t D, std::size_t S) {
  return 8 * (std::sqrt(double(D)) / 2 + std::sqrt(double(S)) / 2) * u;
}

TEST_CASE("softmax: a short row and long ones come to an end without a crash") {
  for (const std::size_t S : {3, 65, 577}) {
    CAPTURE(S);
    CHECK(ending_apart([&] { rows_of_softmax(draw(1, S, 1)); }) == "returned");
  }
}

TEST_CASE("softmax by hand: ln 1, ln 2 and ln 5 go to 1/8, 2/8 and 5/8") {
  const Tensor<2> x = {{0, std::log(2.f), std::log(5.f)}}, want = {{0.125, 0.25, 0.625}};
  CHECK(all_close(softmax(x), want, 4 * u));
  CHECK(all_close(rows_of_softmax(x), want, 4 * u));
}

TEST_CASE(
    "softmax: rows sum to 1, masked keys weigh nothing, formula and row kernel agree at odd "
    "widths") {
  for (const std::size_t S : {1, 2, 15, 16, 17, 63, 64, 65, 131, 577}) {
    CAPTURE(S);
    Tensor<2> x = draw(5, S, S, 3);
    x(2, S / 2) = S > 1 ? -infinity : 1;
    const Tensor<2> weights = rows_of_softmax(x);
    const Tensor<1> sums = xt::sum(weights, {1}), ones = xt::ones<float>({5});
    CHECK(all_close(sums, ones, (S / 2.0 + 4) * u));
    CHECK(all_close(weights, softmax(x), (S / 2.0 + 4) * u));
    if (S > 1) CHECK(weights(2, S / 2) == 0);
  }
}

TEST_CASE("softmax: huge scores do not overflow") {
  const Tensor<2> x = {{1e4, 1e4, -1e4}, {-3e38, 3e38, 0}, {1000, 999, -infinity}};
  const float p = 1 / (1 + std::exp(-1.f));
  const Tensor<2> want = {{0.5, 0.5, 0}, {0, 1, 0}, {p, 1 - p, 0}};
  CHECK(all_close(softmax(x), want, 4 * u));
  CHECK(all_close(rows_of_softmax(x), want, 4 * u));
}

TEST_CASE("softmax: a row with a NaN becomes all NaN, also where its other scores are -infinity") {
  for (const float other : {1.f, -infinity})
    for (std::size_t s = 0; s < 5; ++s) {
      CAPTURE(s);
      Tensor<2> x = xt::ones<float>({1, 5}) * other;
      x(0, s) = NAN;
      const Tensor<2> by_formula = softmax(x);
      for (const float weight : by_formula) {
        CAPTURE(weight);
        CHECK(std::isnan(weight));
      }
      CHECK(softmax_row(row(x, 0)));
      for (const float weight : x) {
        CAPTURE(weight);
        CHECK(std::isnan(weight));
      }
    }
}

TEST_CASE("softmax: a row with a score of infinity becomes all NaN, whatever else it has") {
  for (const float other : {0.f, infinity, -infinity})
    for (std::size_t s = 0; s < 5; ++s) {
      CAPTURE(s);
      Tensor<2> x = xt::ones<float>({1, 5});
      x.fill(other);
      x(0, s) = infinity;
      const Tensor<2> by_formula = softmax(x);
      for (const float weight : by_formula) {
        CAPTURE(weight);
        CHECK(std::isnan(weight));
      }
      CHECK(softmax_row(row(x, 0)));
      for (const float weight : x) {
        CAPTURE(weight);
        CHECK(std::isnan(weight));
      }
    }
}

TEST_CASE("softmax: a NaN or infinity makes all of a long row NaN, wherever it stands") {
  const auto nans = [](ConstRow x) {
    return std::ranges::count_if(x, [](float weight) { return std::isnan(weight); });
  };
  for (const float bad : {NAN, infinity})
    for (const std::size_t s : {3, 500, 970, 999}) {
      CAPTURE(bad);
      CAPTURE(s);
      Tensor<2> x = draw(1, 1000, 1);
      x(0, s) = bad;
      const Tensor<2> by_formula = softmax(x);
      CHECK(nans(row(by_formula, 0)) == 1000);
      CHECK(softmax_row(row(x, 0)));
      CHECK(nans(row(x, 0)) == 1000);
    }
}

TEST_CASE("exp_and_sum: powers of the distance from the number given as highest, and their sum") {
  for (const std::size_t S : {1, 100}) {
    CAPTURE(S);
    Tensor<1> x = empty(S), want = empty(S);
    double sum = 0;
    for (std::size_t s = 0; s < S; ++s) {
      x(s) = -5 - 0.25f * float(s);  // all are below the highest, 2, and what follows is exact
      const double exponential = std::exp(0.5 * (double(x(s)) - 2));
      want(s) = float(exponential), sum += exponential;
    }
    const double got = double(exp_and_sum(row(x), 0.5f, 2));
    // 2 units in the last place are up to 4u of a number. The largest, want(0), is rounded too.
    CHECK(all_close(x, want, 5 * u * double(want(0))));
    CHECK(std::abs(got / sum - 1) < (std::sqrt(double(S)) + 8) * u);
  }
}

TEST_CASE("exp_and_sum: the error of a long sum does not depend on the number of lanes") {
  for (const std::size_t S : {1025, 4097, 1'000'003}) {
    CAPTURE(S);
    Tensor<1> x = Random(S).uniform<1>({S}, -1, 0);
    double sum = 0;
    for (const float score : x) sum += std::exp(double(score));
    // Each exponential is right to 2 units in the last place, which are up to 4u of it.
    CHECK(std::abs(double(exp_and_sum(row(x), 1, 0)) / sum - 1) <= (additions(S) + 4) * u);
  }
}

TEST_CASE("softmax_row: its exp is right to 2 units in the last place, down to where it is 0") {
  Tensor<1> x = xt::zeros<float>({3001}), scaled = empty(3001);
  for (std::size_t i = 1; i < 3001; ++i) x(i) = -0.03f * float(i);  // 0, -0.03 … -90
  scaled = x * 4;
  double sum = 0, worst = 0;
  for (const float score : x) sum += std::exp(double(score));
  CHECK(softmax_row(row(x)));
  for (std::size_t i = 0; i < 2700; ++i) {  // down to -81: what is left after division is normal
    const double ratio = double(x(i)) / double(x(0)) / std::exp(double(-0.03f * float(i)));
    worst = std::max(worst, std::isnan(ratio) ? 1 : std::abs(ratio - 1));
  }
  // 1 unit is up to 2u of a number; x(0) and x(i) are each rounded twice besides.
  CHECK(worst < (2 * 2 + 4) * u);
  // 3001 positive terms, added in any order; e^-90 may be a number too small for float's 24 bits.
  CHECK(std::abs(x(0) * sum - 1) < (std::sqrt(3001.0) + 8) * u);
  CHECK(x(3000) < 1e-38f);
  CHECK(softmax_row(row(scaled), 0.25f));
  CHECK(all_close(scaled, x, 0));  // a scale of 1/4 of scores times 4: the same bits
}

TEST_CASE("softmax: the scores of 70,001 keys may be huge, too") {
  const std::size_t S = 70'001;
  Tensor<2> x = empty(2, S);
  for (std::size_t s = 0; s < S; ++s) x(0, s) = s % 2 ? 1000 : 999, x(1, s) = -x(0, s);
  const double e = std::exp(-1.0), odd = double(S / 2), even = double(S - S / 2);
  const Tensor<2> weights = rows_of_softmax(x);
  const double most = (double(S) / 2 + 8) * u;
  CHECK(std::abs(double(weights(0, 1)) * (odd + even * e) - 1) < most);
  CHECK(std::abs(double(weights(0, 0)) * (odd / e + even) - 1) < most);
  CHECK(std::abs(double(weights(1, S - 1)) * (odd * e + even) - 1) < most);
  CHECK(all_close(softmax(x), weights, 2 * most * double(weights(0, 1))));
}

TEST_CASE("attention by hand: equal keys give the mean of the values seen") {
  const Tensor<2> q = {{1, 0}, {0, 1}, {5, 5}}, k = {{2, 2}, {2, 2}, {2, 2}};
  const Tensor<2> v = {{3, 0}, {5, 2}, {1, 7}}, want = {{3, 0}, {4, 1}, {3, 3}};
  CHECK(all_close(attention(q, k, v, Mask::causal), want, 8 * 7 * u));
  CHECK(all_close(by_rows(q, k, v, 1, Mask::causal), want, 8 * 7 * u));
}

TEST_CASE("attention by hand, river bank: the first token sees itself, scores are divided by √D") {
  const Tensor<2> q = {{2, 2, 2, 2}, {2, 2, 2, 2}}, k = {{std::log(3.f), 0, 0, 0}, {0, 0, 0, 0}};
  const Tensor<2> v = {{4, 0, 0, 0}, {0, 4, 0, 0}};
  const Tensor<2> want = {{4, 0, 0, 0}, {3, 1, 0, 0}};  // 2·ln 3 / √4 = ln 3
  CHECK(all_close(attention(q, k, v, Mask::causal), want, 16 * u));
  CHECK(all_close(by_rows(q, k, v, 1, Mask::causal), want, 16 * u));
}

TEST_CASE(
    "scores that all overflow to -infinity: the formula throws, the kernel's row is not finite") {
  const Tensor<2> q = {{1e30f}, {1}}, k = {{-1e30f}, {-1}}, v = {{2}, {3}};
  REFUSES(attention(q, k, v, Mask::causal),
          "softmax: row 0 is all -infinity: a mask that hides every key");
  const Tensor<2> out = by_rows(q, k, v, 1, Mask::causal);
  CAPTURE(out(0, 0));
  CHECK_FALSE(std::isfinite(out(0, 0)));
  CHECK(out(1, 0) == 3);  // its scores are -1e30 and -1
}

TEST_CASE("the first token gets its own value, and the queries are the last of the positions") {
  const Tensor<2> q = draw(70, 8, 1), k = draw(70, 8, 2), v = draw(70, 8, 3);
  const Tensor<2> first = xt::view(v, xt::range(0, 1), xt::all());
  for (const Tensor<2>& out : {attention(q, k, v, Mask::causal), by_rows(q, k, v, 1, Mask::causal)})
    CHECK(all_close(Tensor<2>(xt::view(out, xt::range(0, 1), xt::all())), first, 0));

  const Tensor<2> want = {{0, 0, 0, -infinity}, {0, 0, 0, 0}};
  CHECK(attention_mask(2, 4, Mask::causal) == want);
  const KeyRange three = {0, 3}, four = {0, 4};
  CHECK(keys_seen(0, 2, 4, Mask::causal) == three);
  CHECK(keys_seen(0, 2, 4, Mask::none) == four);
}

TEST_CASE("a sliding window by hand: of the keys up to its own, a query sees the last W") {
  const float no = -infinity;
  const Tensor<2> want = {{0, no, no, no}, {0, 0, no, no}, {no, 0, 0, no}, {no, no, 0, 0}};
  CHECK(attention_mask(4, 4, Mask::sliding(2)) == want);
  const KeyRange last_three = {6, 9}, last_four = {5, 9};
  CHECK(keys_seen(1, 2, 9, Mask::sliding(3)) == last_three);  // the end of a cache
  CHECK(keys_seen(0, 2, 2, 9, Mask::sliding(3)) == last_four);
  CHECK(attention_mask(3, 3, Mask::sliding(0)) == attention_mask(3, 3, Mask::causal));
  CHECK(attention_mask(3, 3, Mask::sliding(3)) == attention_mask(3, 3, Mask::causal));

  // Equal keys: each gets the mean of its own value and the one before it.
  const Tensor<2> q = xt::zeros<float>({4, 1}), v = {{8}, {4}, {2}, {6}};
  const Tensor<2> means = {{8}, {6}, {3}, {4}};
  CHECK(all_close(attention(q, q, v, Mask::sliding(2)), means, 8 * 8 * u));
  CHECK(all_close(by_rows(q, q, v, 1, Mask::sliding(2)), means, 8 * 8 * u));
}

TEST_CASE("sliding windows: formula and kernel equal float64; pairs are counted one by one") {
  const std::size_t H = 2, D = 7;
  for (const std::size_t S : {1, 9, 65, 300})
    for (const std::size_t T : {S, (S + 1) / 2, std::size_t(1)})
      for (const std::size_t window : windows_of(S)) {
        CAPTURE(S);
        CAPTURE(T);
        CAPTURE(window);
        const Mask mask = Mask::sliding(window);
        const Tensor<2> q = draw(T, H * D, 1), k = draw(S, H * D, 2), v = draw(S, H * D, 3);
        const Tensor<2> want = attention_in_double(q, k, v, H, H, mask);
        CHECK(all_close(by_formula(q, k, v, H, mask), want, bound(D, S)));
        CHECK(all_close(by_rows(q, k, v, H, mask), want, bound(D, S)));

        double pairs = 0;
        for (std::size_t t = 0; t < T; ++t)
          for (std::size_t s = 0; s < S; ++s) pairs += sees(S - T + t, s, mask);
        CHECK(pairs_seen(T, S, mask) == pairs);
      }
  CHECK(pairs_seen(3, 5, Mask::none) == 15);
}

TEST_CASE("other rules for scores: a factor and a cap, by hand and in float64") {
  // 1·1.5 times 2, capped at 3: 3·tanh(1). Against a score of 0 its weight is 1 / (1 + e^−2.2848).
  const Tensor<2> one = {{1}}, keys = {{0}, {1.5}}, values = {{0}, {1}};
  const Tensor<2> want = {{float(1 / (1 + std::exp(-3 * std::tanh(1.0))))}};
  CHECK(all_close(attention(one, keys, values, ScoreRule(Mask::none, 2, 3)), want, 8 * u));
  const std::size_t D = 7, T = 70, S = 90;
  const Tensor<2> q = draw(T, D, 1), k = draw(S, D, 2), v = draw(S, D, 3);
  for (const ScoreRule& rule : other_rules()) {
    CAPTURE(rule.factor);
    CAPTURE(rule.cap);
    const Tensor<2> exact = attention_in_double(q, k, v, 1, 1, rule);
    CHECK(all_close(attention(q, k, v, rule), exact, 4 * bound(D, S)));
    Tensor<2> out = empty(T, D);
    Tensor<1> scratch = empty(attend_floats(T, S));
    attend(q, k, v, rule, out, row(scratch));
    CHECK(all_close(out, exact, 4 * bound(D, S)));
  }
  CHECK(ScoreRule(Mask::causal).factor_for(16) == 0.25f);
}

TEST_CASE("the kernel skips what lies before the window of a block's first query") {
  const std::size_t T = 150, D = 8;  // the last block of queries, 128 to 149, sees keys 119 to 149
  const Tensor<2> q = draw(T, D, 1);
  Tensor<2> k = draw(T, D, 2), v = draw(T, D, 3);
  const Tensor<2> want = attention_in_double(q, k, v, 1, 1, Mask::sliding(10));
  for (std::size_t s = 0; s < 119; ++s) row(k, s)[0] = row(v, s)[0] = NAN;
  const auto last_block = [](const Tensor<2>& x) {
    return Tensor<2>(xt::view(x, xt::range(128, 150), xt::all()));
  };
  const Tensor<2> got = by_rows(q, k, v, 1, Mask::sliding(10));
  CHECK(all_close(last_block(got), last_block(want), bound(D, T)));
}

TEST_CASE("the past does not depend on the future: no bit of it changes when later tokens do") {
  const std::size_t T = 150, H = 3,
                    kept = 83;  // kept: neither the end of a block nor of a register
  Tensor<2> q = draw(T, 48, 1), k = draw(T, 48, 2), v = draw(T, 48, 3);
  const Tensor<2> formula = by_formula(q, k, v, H, Mask::causal);
  const Tensor<2> kernel = by_rows(q, k, v, H, Mask::causal);
  for (Tensor<2>* x : {&q, &k, &v})
    xt::view(*x, xt::range(kept, T), xt::all()) = draw(T - kept, 48, 4, 30);
  const auto past = [&](const Tensor<2>& x) {
    return Tensor<2>(xt::view(x, xt::range(0, kept), xt::all()));
  };
  CHECK(all_close(past(by_formula(q, k, v, H, Mask::causal)), past(formula), 0));
  CHECK(all_close(past(by_rows(q, k, v, H, Mask::causal)), past(kernel), 0));
  CHECK_FALSE(all_close(past(by_rows(q, k, v, H, Mask::none)), past(kernel), 0.1));
}

TEST_CASE("the kernel equals the formula: both masks, odd sizes, caches, many heads") {
  struct Case {
    std::size_t T, S, H, D;
  };
  for (const auto [T, S, H, D] : {Case{1, 1, 1, 1}, Case{1, 200, 3, 5}, Case{64, 64, 2, 16},
                                  Case{65, 65, 2, 7}, Case{130, 193, 3, 33}})
    for (const Mask mask : {Mask::none, Mask::causal}) {
      const Tensor<2> q = draw(T, H * D, 1), k = draw(S, H * D, 2), v = draw(S, H * D, 3);
      CAPTURE(q.shape(0));
      CAPTURE(k.shape(0));
      CHECK(all_close(by_rows(q, k, v, H, mask), by_formula(q, k, v, H, mask), bound(D, S)));
    }
}

TEST_CASE("12 heads of 300 tokens, one query with 5000 keys: formula and kernel equal float64") {
  struct Case {
    std::size_t T, S, H, D;
  };
  for (const auto& [T, S, H, D] : {Case{300, 300, 12, 8}, {1, 5000, 2, 64}}) {
    const Tensor<2> q = draw(T, H * D, 21), v = draw(S, H * D, 23);
    CAPTURE(v.shape(0));
    Tensor<2> k = draw(S, H * D, 22);
    for (std::size_t c = 0; c < H * D; ++c) k(S - 5, c) = 2 * q(T - 1, c);  // the highest score
    const Tensor<2> want = attention_in_double(q, k, v, H, H, Mask::causal);
    const double most = 4 * bound(D, S);  // a score of up to 2·√D·(q·q)/D or so
    CHECK(all_close(by_formula(q, k, v, H, Mask::causal), want, most));
    CHECK(all_close(by_rows(q, k, v, H, Mask::causal), want, most));
  }
  const Tensor<3> scores = Random(24).normal<3>({12, 3, 5}), weights = softmax(scores);
  for (std::size_t h = 0; h < 12; ++h)
    CHECK(
        all_close(Tensor<2>(xt::view(weights, h)), softmax(Tensor<2>(xt::view(scores, h))), 4 * u));
}

TEST_CASE("keys and values may be parts of matrices of different widths") {
  const std::size_t T = 5, S = 9, H = 2, D = 3;
  const Tensor<2> q = draw(T, H * D, 1), wide = draw(S, H * D + 4, 2);
  const Tensor<2> wider = draw(S, H * D + 11, 3);
  const ConstMatrix k = ConstMatrix(wide).cols_from(3, H * D);
  const ConstMatrix v = ConstMatrix(wider).cols_from(5, H * D);
  Tensor<2> out = empty(T, H * D);
  AttentionScratch scratch(T, S);
  attention_rows(q, side_by_side(k, v, H), Mask::causal, out, scratch);
  const Tensor<2> want = attention_in_double(q, copy_of(k), copy_of(v), H, H, Mask::causal);
  CHECK(all_close(out, want, bound(D, S)));
}

TEST_CASE("the kernels allocate nothing, for one head and for all, for one query and for several") {
  const std::size_t S = 40, H = 2, D = 8;
  const Tensor<2> k = draw(S, H * D, 2), v = draw(S, H * D, 3);
  const KeyValueHeads heads = side_by_side(k, v, H);
  for (const std::size_t T : {1, 70}) {
    CAPTURE(T);
    const Tensor<2> q = draw(T, H * D, 1);
    Tensor<2> out = empty(T, H * D);
    AttentionScratch scratch(T, S);
    const auto head_1 = [&] {
      attend(ConstMatrix(q).head(1, D), heads.keys(1), heads.values(1), Mask::none,
             Matrix(out).head(1, D), scratch.rows().row(0));
    };
    const auto all = [&] { attention_rows(q, heads, Mask::none, out, scratch); };
    head_1(), all();
    CHECK(allocates_nothing(3, head_1));
    CHECK(allocates_nothing(3, all));
  }
}

TEST_CASE("2,100 queries at once get what each of them gets alone") {
  const std::size_t T = 2100, H = 3, D = 4;
  const Tensor<2> q = draw(T, H * D, 25), k = draw(T, H * D, 26), v = draw(T, H * D, 27);
  const auto rows = [](const Tensor<2>& x, std::size_t begin, std::size_t end) {
    return Tensor<2>(xt::view(x, xt::range(begin, end)));
  };
  const Tensor<2> all = by_rows(q, k, v, H, Mask::causal);
  for (const std::size_t t : {0, 63, 700, 1500, 2099}) {
    CAPTURE(t);
    const Tensor<2> alone =
        by_rows(rows(q, t, t + 1), rows(k, 0, t + 1), rows(v, 0, t + 1), H, Mask::causal);
    CHECK(all_close(rows(all, t, t + 1), alone, 2 * bound(D, t + 1)));  // either may be so far off
  }
}

TEST_CASE("attention equals PyTorch's in float64: causal, the end of a cache, cross") {
  struct Case {
    std::string name;
    std::size_t H;
    Mask mask;
  };
  for (const auto& [name, H, mask] :
       {Case{"causal", 6, Mask::causal}, Case{"cached", 4, Mask::causal},
        Case{"cross", 2, Mask::none}}) {
    const std::string path = T2T_FIXTURES "/" + name;
    CAPTURE(path);
    const Tensor<2> q = load_npy<2>(path + "_q.npy"), k = load_npy<2>(path + "_k.npy"),
                    v = load_npy<2>(path + "_v.npy"), want = load_npy<2>(path + "_out.npy");
    CHECK(all_close(by_formula(q, k, v, H, mask), want, bound(16, 42)));
    CHECK(all_close(by_rows(q, k, v, H, mask), want, bound(16, 42)));
  }
}

TEST_CASE("the layer equals PyTorch's; with one head of width C it is one attention") {
  const Tensor<2> x = load_npy<2>(T2T_FIXTURES "/layer_x.npy");
  const Tensor<2> w_qkv = load_npy<2>(T2T_FIXTURES "/layer_w_qkv.npy");
  const auto rows = [&](int i) {
    return Tensor<2>(xt::view(w_qkv, xt::range(12 * i, 12 * i + 12), xt::all()));
  };
  AttentionWeights weights{rows(0), rows(1), rows(2), load_npy<2>(T2T_FIXTURES "/layer_w_o.npy")};
  // Four projections of C = 12 lie around the attention: each adds C/2 roundings or so.
  CHECK(all_close(multi_head_attention(x, weights, 3, Mask::causal),
                  load_npy<2>(T2T_FIXTURES "/layer_out.npy"), 4 * bound(12, 9)));

  weights = {xt::eye<float>(12), xt::eye<float>(12), xt::eye<float>(12), xt::eye<float>(12)};
  CHECK(all_close(multi_head_attention(x, weights, 1, Mask::none), attention(x, x, x, Mask::none),
                  bound(12, 9)));
}

TEST_CASE("drawn weights have mean 0 and deviation 1/√C, and come in the order q, k, v, o") {
  Random random(3), same(3);
  const AttentionWeights drawn = draw_attention_weights(64, random);
  for (const Tensor<2>* w : {&drawn.w_q, &drawn.w_k, &drawn.w_v, &drawn.w_o}) {
    REQUIRE(w->shape() == std::array<std::size_t, 2>{64, 64});
    double sum = 0, squares = 0;
    for (const float weight : *w) sum += weight, squares += double(weight) * double(weight);
    // Four standard deviations of the mean and of the deviation of 4096 numbers from N(0, 1/64).
    CHECK(std::abs(sum / 4096) < 4 * (1 / 8.0) / 64);
    CHECK(std::abs(std::sqrt(squares / 4096) - 1 / 8.0) < 4 * (1 / 8.0) / std::sqrt(2 * 4096.0));
    CHECK(all_close(*w, same.normal<2>({64, 64}, 1 / 8.0f), 0));
  }
}

TEST_CASE("head h is channels hD to hD + D - 1 of each token; merging undoes splitting") {
  const Tensor<2> x = {{0, 1, 2, 3}, {10, 11, 12, 13}};
  const Tensor<3> want = {{{0, 1}, {10, 11}}, {{2, 3}, {12, 13}}};
  CHECK(all_close(split_heads(x, 2), want, 0));
  CHECK(all_close(merge_heads(split_heads(x, 2)), x, 0));
}

TEST_CASE("among many rows the one without a key is refused by its number") {
  Tensor<2> hidden = draw(400, 100, 1);
  for (float& score : row(hidden, 311)) score = -infinity;
  const char* message = "softmax: row 311 is all -infinity: a mask that hides every key";
  REFUSES(softmax(hidden), message);
  REFUSES(rows_of_softmax(hidden), message);
}

TEST_CASE("softmax by rows allocates nothing") {
  Tensor<2> x = draw(5, 33, 1);
  CHECK(allocates_nothing(3, [&] { softmax_rows(x); }));
}

TEST_CASE("softmax_rows: a row without a key is refused after the other rows are done") {
  Tensor<2> x = {
      {0, std::log(2.f), std::log(5.f)}, {-infinity, -infinity, -infinity}, {7, 7, -infinity}};
  REFUSES(softmax_rows(x), "softmax: row 1 is all -infinity: a mask that hides every key");
  const Tensor<2> first = {{0.125, 0.25, 0.625}}, last = {{0.5, 0.5, 0}};
  CHECK(all_close(copy_of(ConstMatrix(x).rows_from(0, 1)), first, 4 * u));
  CHECK(all_close(copy_of(ConstMatrix(x).rows_from(2, 1)), last, 4 * u));
}

TEST_CASE("scratch that was made while one thread was in use is refused when two are") {
  const Tensor<2> x = draw(3, 8, 1);
  Tensor<2> out = empty(3, 8);
  const std::size_t threads = thread_count();
  set_threads(1);
  AttentionScratch of_one(3, 3);
  set_threads(2);
  if (of_one.threads() < thread_count())  // where races are looked for, there are always 3 threads
    REFUSES(attention_rows(x, side_by_side(x, x, 2), Mask::none, out, of_one),
            "scratch: wanted 9 floats for each of 2 threads (3 queries, 3 keys), got 9 floats for "
            "each of 1 threads");
  set_threads(int(threads));
}

TEST_CASE("what is not possible is refused, with the values in the message") {
  const Tensor<2> x = draw(3, 8, 1), hidden = {{1, 2}, {-infinity, -infinity}};
  REFUSES(softmax(hidden), "softmax: row 1 is all -infinity: a mask that hides every key");
  REFUSES(rows_of_softmax(hidden), "softmax: row 1 is all -infinity: a mask that hides every key");
  REFUSES(split_heads(x, 3), "heads: wanted a number H that divides C = 8, got H = 3");
  REFUSES(by_rows(x, x, x, 0, Mask::none),
          "heads: wanted a number H that divides C = 8, got H = 0");
  REFUSES(attention(x, draw(2, 8, 2), draw(2, 8, 3), Mask::causal),
          "causal mask: wanted at least as many keys as queries, got 2 and 3");
  REFUSES(attention(x, draw(2, 7, 2), draw(2, 7, 3), Mask::none),
          "k: wanted shape [2, 8], got [2, 7]");
  REFUSES(attention(x, x, draw(2, 8, 3), Mask::none), "v: wanted shape [3, 8], got [2, 8]");
  REFUSES(attention(x, x, draw(3, 7, 3), Mask::none), "v: wanted shape [3, 8], got [3, 7]");
  REFUSES(attention(empty(3, 0), empty(3, 0), empty(3, 0), Mask::none),
          "D, the width of a head: wanted at least 1, got 0");
  REFUSES(attention_mask(0, 4, Mask::none), "T, the number of queries: wanted at least 1, got 0");
  REFUSES(attention_mask(3, 0, Mask::none), "S, the number of keys: wanted at least 1, got 0");
  REFUSES(attention(x, x, x, Mask{false, 2}),
          "window: wanted 0, since the mask is not causal, got 2");
  Random of_weights(2);
  AttentionWeights weights = draw_attention_weights(8, of_weights);
  const auto layer = [&] { return multi_head_attention(x, weights, 2, Mask::causal); };
  CHECK_NOTHROW(layer());
  for (const auto& [name, w] : {std::pair("w_q", &weights.w_q),
                                {"w_k", &weights.w_k},
                                {"w_v", &weights.w_v},
                                {"w_o", &weights.w_o}})
    for (const auto& [rows, cols] : {std::pair(7, 8), {8, 7}}) {
      const Tensor<2> fitting = std::exchange(*w, draw(rows, cols, 1));
      REFUSES(layer(), fmt::format("{}: wanted shape [8, 8], got [{}, {}]", name, rows, cols));
      *w = fitting;
    }
  REFUSES(multi_head_attention(x, draw(3, 7, 2), weights, 2, Mask::none),
          "memory: wanted shape [3, 8], got [3, 7]");
  REFUSES(multi_head_attention(x, weights, 3, Mask::none),
          "heads: wanted a number H that divides C = 8, got H = 3");
  Tensor<2> out = empty(3, 8);
  AttentionScratch small(1, 4);
  AttentionScratch enough(3, 3);
  REFUSES(side_by_side(x, x, 3), "heads: wanted a number H that divides C = 8, got H = 3");
  REFUSES(side_by_side(x, draw(2, 8, 2), 2), "v: wanted shape [3, 8], got [2, 8]");
  REFUSES(attention_rows(draw(3, 6, 2), side_by_side(x, x, 2), Mask::none, out, enough),
          "q: wanted shape [3, 8], got [3, 6]");
  REFUSES(attend(x, x, x, Mask::none, out, small.rows().row(0)),
          "scratch: wanted at least 9 floats for 3 queries and 3 keys, got 4");
  KeyValueHeads heads = side_by_side(x, x, 2);
  heads.first_values.rows = 2;
  REFUSES(attention_rows(x, heads, Mask::none, out, enough),
          "values: wanted shape [3, 4], got [2, 4]");
  heads.first_values.rows = 3, heads.G = 0;
  REFUSES(attention_rows(x, heads, Mask::none, out, enough),
          "G, the heads of keys and values: wanted at least 1, got 0");
  heads = side_by_side(x, x, 2);
  heads.first_keys.cols = 0;
  REFUSES(attention_rows(x, heads, Mask::none, out, enough),
          "D, the width of a head: wanted at least 1, got 0");
  REFUSES(attention_rows(x, side_by_side(x, x, 2), Mask::none, out, small),
          fmt::format("scratch: wanted 9 floats for each of {0} threads (3 queries, 3 keys), got 4 "
                      "floats for each of {0} threads",
                      thread_count()));
}

}  // namespace t2t::causal_attention_test
