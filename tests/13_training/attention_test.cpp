// What must be true of attention's backward pass, as formula and block by block, and of RoPE's.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "03_rope/fast/rope_rows.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "13_training/attention/attention_backward.hpp"
#include "13_training/attention/flash_backward.hpp"
#include "13_training/differences.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/attention_in_double.hpp"
#include "support/first_difference.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::attention_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1

struct Heads {
  size_t H, G, D;
};

/// B texts of T tokens, one after the other, with the gradient of what attention made of them.
struct Texts {
  Tensor<2> q, k, v;  // [B·T, H·D], [B·T, G·D] twice
  Tensor<2> dout;     // [B·T, H·D]

  Texts(Heads n, size_t tokens, float scale = 2)
      : q(numbers(1, scale, 0, tokens, n.H * n.D)),
        k(numbers(2, 2, 0, tokens, n.G * n.D)),
        v(numbers(3, 2, 0, tokens, n.G * n.D)),
        dout(numbers(4, 2, 0, tokens, n.H * n.D)) {}
};

/// What the forward pass gave for each of B texts.
static Tensor<2> forward(const Texts& x, size_t B, Heads n, const ScoreRule& rule) {
  const size_t T = x.q.shape(0) / B;
  Tensor<2> out = empty(B * T, n.H * n.D);
  for (size_t b = 0; b < B; ++b)
    xt::view(out, xt::range(b * T, b * T + T), xt::all()) = grouped_query_attention(
        rows_of(x.q, b * T, T), rows_of(x.k, b * T, T), rows_of(x.v, b * T, T), n.H, n.G, rule);
  return out;
}
static AttentionGradients by_flash(const Texts& x, size_t B, Heads n, const ScoreRule& rule) {
  const size_t N = x.q.shape(0);
  AttentionGradients got{empty(N, n.H * n.D), empty(N, n.G * n.D), empty(N, n.G * n.D)};
  const Tensor<2> out = forward(x, B, n, rule);
  FlashBackwardScratch scratch(n.H, n.G, n.D, N / B);
  flash_backward({x.q, x.k, x.v, out, x.dout}, B, n.H, n.G, rule, {got.q, got.k, got.v}, scratch);
  return got;
}
/// One text, by the formula and by the kernel.
static AttentionGradients formula(const Texts& x, Heads n, const ScoreRule& rule) {
  return attention_backward(x.q, x.k, x.v, n.H, n.G, rule, x.dout);
}
static AttentionGradients kernel(const Texts& x, Heads n, const ScoreRule& rule) {
  return by_flash(x, 1, n, rule);
}
static Closeness same_bits(const AttentionGradients& a, const AttentionGradients& b) {
  return {a.q == b.q && a.k == b.k && a.v == b.v,
          fmt::format("of q: {}; of k: {}; of v: {}", first_difference(a.q, b.q),
                      first_difference(a.k, b.k), first_difference(a.v, b.v))};
}

/// A score is a sum of D products, and its error is a share of its weight. dq then adds up S keys,
/// dk and dv the queries of all heads of a group. `size` is what the largest sum comes to.
static double bound(Heads n, size_t T, size_t S, double size) {
  return rounding(n.D, size) + rounding(S, size) + rounding(T * (n.H / n.G), size);
}

TEST_CASE("by hand: softmax passes on what lies above the mean of the gradients") {
  // Weights (½, ½): the mean of (1, 0) is ½. Weights (¼, ¾) of (8, 4): the mean is 5. A masked key
  // has weight 0.
  const Tensor<2> alike = softmax_backward({{0.5f, 0.5f}}, {{1, 0}});
  CHECK(all_close(alike, Tensor<2>{{0.25f, -0.25f}}, 0));
  const Tensor<2> hidden = softmax_backward({{0.25f, 0.75f, 0}}, {{8, 4, 100}});
  CHECK(all_close(hidden, Tensor<2>{{0.75f, -0.75f, 0}}, 0));
}

TEST_CASE("softmax: gradients are those of finite differences, and each row's add up to 0") {
  const size_t T = 3;
  for (const size_t S : {1, 2, 7, 33}) {
    const Tensor<2> dweights = numbers(2, 2, 0, T, S);
    Doubles scores(numbers(1, 8, 0, T, S)), weights(T, S);
    const auto loss = [&] {
      for (size_t t = 0; t < T; ++t) {
        double sum = 0;
        for (size_t s = 0; s < S; ++s) sum += std::exp(scores(t, s));
        for (size_t s = 0; s < S; ++s) weights(t, s) = std::exp(scores(t, s)) / sum;
      }
      return dot(dweights, weights);
    };
    loss();
    Tensor<2> rounded = empty(T, S);
    std::copy(weights.numbers.begin(), weights.numbers.end(), rounded.begin());
    const Tensor<2> got = softmax_backward(rounded, dweights);
    CHECK(all_close(got, by_differences(scores, loss), rounding(S, 2)));
    for (size_t t = 0; t < T; ++t) {
      double sum = 0;
      for (size_t s = 0; s < S; ++s) sum += double(got(t, s));
      CHECK(std::abs(sum) <= rounding(S, 2));
    }
  }
}

TEST_CASE("by hand: two tokens, the second of which attends to both alike") {
  // D = 4, √D = 2. Token 1 has the score 2/2 with both keys, hence weights ½ and ½. dP = dout·v is
  // (8, 4) there, its mean 6, so dscores = (½·2, −½·2). dq = (k₀ − k₁) / 2; dk = ±q / 2. Token 0
  // has one key, weight 1, and a score that changes nothing: it gives dout to v₀ alone.
  Texts x({1, 1, 4}, 2);
  x.q = {{5, 6, 7, 8}, {2, 0, 0, 0}}, x.k = {{1, 2, 0, 0}, {1, 0, 4, 0}};
  x.v = {{8, 1, 0, 0}, {4, 3, 0, 0}}, x.dout = {{0, 0, 9, 0}, {1, 0, 0, 0}};
  for (const auto backward : {formula, kernel}) {
    const AttentionGradients got = backward(x, {1, 1, 4}, Mask::causal);
    CHECK(all_close(got.q, Tensor<2>{{0, 0, 0, 0}, {0, 1, -2, 0}}, 16 * u));
    CHECK(all_close(got.k, Tensor<2>{{1, 0, 0, 0}, {-1, 0, 0, 0}}, 64 * u));
    CHECK(all_close(got.v, Tensor<2>{{0.5f, 0, 9, 0}, {0.5f, 0, 0, 0}}, 16 * u));
  }
}

TEST_CASE("by hand: of two equal query heads, each gives a shared key as much as one alone") {
  const Heads one{1, 1, 4}, two{2, 1, 4};
  const Texts x(one, 5);
  Texts twice(two, 5);
  twice.k = x.k, twice.v = x.v;
  twice.q = xt::concatenate(xt::xtuple(x.q, x.q), 1);
  twice.dout = xt::concatenate(xt::xtuple(x.dout, x.dout), 1);
  for (const auto backward : {formula, kernel}) {
    const AttentionGradients alone = backward(x, one, Mask::causal);
    const AttentionGradients got = backward(twice, two, Mask::causal);
    CHECK(all_close(copy_of(ConstMatrix(got.q).head(1, 4)), alone.q, 16 * u));
    CHECK(all_close(got.k, Tensor<2>(2 * alone.k), 16 * u));
    CHECK(all_close(got.v, Tensor<2>(2 * alone.v), 16 * u));
  }
}

/// Attention in float64, written down as its definition says.
static Doubles attend(const Doubles& q, const Doubles& k, const Doubles& v, Heads n,
                      const ScoreRule& rule) {
  Doubles out(q.rows, q.cols);
  std::vector<double> weights(k.rows);
  for (size_t t = 0; t < q.rows; ++t)
    for (size_t h = 0; h < n.H; ++h) {
      const size_t g = h / (n.H / n.G);
      double highest = -INFINITY, sum = 0;
      for (size_t s = 0; s < k.rows; ++s) {
        weights[s] = 0;
        for (size_t d = 0; d < n.D; ++d) weights[s] += q(t, h * n.D + d) * k(s, g * n.D + d);
        weights[s] *= rule.factor > 0 ? double(rule.factor) : 1 / std::sqrt(double(n.D));
        if (rule.cap > 0) weights[s] = rule.cap * std::tanh(weights[s] / double(rule.cap));
        if (!sees(k.rows - q.rows + t, s, rule.mask)) weights[s] = -INFINITY;
        highest = std::max(highest, weights[s]);
      }
      for (double& weight : weights) sum += weight = std::exp(weight - highest);
      for (size_t s = 0; s < k.rows; ++s)
        for (size_t d = 0; d < n.D; ++d)
          out(t, h * n.D + d) += weights[s] / sum * v(s, g * n.D + d);
    }
  return out;
}

/// The masks, and the rules of other models, with caps that the scores reach.
static std::vector<ScoreRule> rules_for(size_t T) {
  std::vector<ScoreRule> rules = {Mask::causal, Mask::sliding(3), Mask::sliding(1), Mask::none,
                                  Mask::sliding(T)};
  for (const ScoreRule& rule : other_rules()) rules.push_back(rule);
  rules.push_back({Mask::sliding(3), 0.8f, 0.5f});
  return rules;
}

TEST_CASE("attention: formula and kernel are what finite differences give in float64") {
  const size_t T = 7;
  for (const Heads n : {Heads{6, 2, 5}, {6, 1, 3}, {3, 3, 5}, {1, 1, 1}})
    for (const ScoreRule& rule : rules_for(T)) {
      CAPTURE(n.H);
      CAPTURE(n.G);
      CAPTURE(rule.mask.window);
      CAPTURE(rule.factor);
      CAPTURE(rule.cap);
      const Texts x(n, T);
      Doubles q(x.q), k(x.k), v(x.v);
      const auto loss = [&] { return dot(x.dout, attend(q, k, v, n, rule)); };
      const Tensor<2> dq = by_differences(q, loss), dk = by_differences(k, loss);
      const Tensor<2> dv = by_differences(v, loss);
      // q, k, v and dout are at most 1: dP is at most D, and so are its sums weighted by P.
      const double most = bound(n, T, T, 1);
      for (const auto backward : {formula, kernel}) {
        const AttentionGradients got = backward(x, n, rule);
        CHECK(all_close(got.q, dq, most));
        CHECK(all_close(got.k, dk, most));
        CHECK(all_close(got.v, dv, most));
      }
    }
}

TEST_CASE("the formula takes more keys than queries, and more queries than keys without a mask") {
  const Heads n{4, 2, 3};
  struct Lengths {
    size_t T, S;
    Mask mask;
  };
  for (const Lengths& of : {Lengths{3, 8, Mask::causal},
                            {1, 6, Mask::sliding(4)},
                            {4, 9, Mask::none},
                            {6, 2, Mask::none}}) {
    const size_t T = of.T, S = of.S;
    const Mask mask = of.mask;
    CAPTURE(T);
    Texts x(n, S);
    x.q = numbers(5, 2, 0, T, n.H * n.D), x.dout = numbers(6, 2, 0, T, n.H * n.D);
    Doubles q(x.q), k(x.k), v(x.v);
    const auto loss = [&] { return dot(x.dout, attend(q, k, v, n, mask)); };
    const AttentionGradients got = formula(x, n, mask);
    CHECK(all_close(got.q, by_differences(q, loss), bound(n, T, S, 1)));
    CHECK(all_close(got.k, by_differences(k, loss), bound(n, T, S, 1)));
    CHECK(all_close(got.v, by_differences(v, loss), bound(n, T, S, 1)));
  }
}

TEST_CASE("scores of a hundred: no weight overflows, and weights near 1 stay right") {
  // q is up to 150, so that scores reach 200 and a weight is 1 to a few digits in most rows. A
  // score of 200 and its log-sum are off by 200 roundings, a share of the weight; dk is a multiple
  // of q.
  const Heads n{2, 1, 5};
  const size_t T = 9;
  const Texts x(n, T, 300);
  Doubles q(x.q), k(x.k), v(x.v);
  const auto loss = [&] { return dot(x.dout, attend(q, k, v, n, Mask::causal)); };
  // dk's third derivative is of the size of q³: a smaller h.
  const Tensor<2> dk = by_differences(k, loss, 1e-7), dq = by_differences(q, loss);
  const Tensor<2> dv = by_differences(v, loss);
  for (const auto backward : {formula, kernel}) {
    const AttentionGradients got = backward(x, n, Mask::causal);
    CHECK(all_close(got.q, dq, 2 * 200 * u));
    CHECK(all_close(got.k, dk, 2 * 200 * u * 150));
    CHECK(all_close(got.v, dv, 2 * 200 * u));
  }
}

TEST_CASE("attention: formula and kernel equal PyTorch's autograd over several blocks") {
  struct Case {
    const char* name;
    Heads n;
    Mask mask;
  };
  const size_t T = 70;
  for (const Case& c : {Case{"window", {6, 2, 5}, Mask::sliding(20)},
                        {"causal", {4, 1, 10}, Mask::causal},
                        {"none", {3, 3, 5}, Mask::none}}) {
    CAPTURE(c.name);
    const auto& [H, G, D] = c.n;
    Texts x(c.n, T);
    x.q = numbers(8, 6, 0, T, H * D), x.k = numbers(9, 6, 0, T, G * D);
    x.v = numbers(10, 2, 0, T, G * D), x.dout = numbers(11, 2, 0, T, H * D);
    const Tensor<2> want = reference<2>(std::string("attention_") + c.name);
    for (const auto backward : {formula, kernel}) {
      const AttentionGradients got = backward(x, c.n, c.mask);
      // Scores reach 15, of which the error is a share; gradients reach 5.
      CHECK(all_close(got.q, copy_of(ConstMatrix(want).cols_from(0, H * D)), bound(c.n, T, T, 2)));
      CHECK(all_close(got.k, copy_of(ConstMatrix(want).cols_from(H * D, G * D)),
                      bound(c.n, T, T, 4)));
      CHECK(all_close(got.v, copy_of(ConstMatrix(want).cols_from((H + G) * D, G * D)),
                      bound(c.n, T, T, 4)));
    }
  }
}

/// Compares each of B texts with the formula.
static void check_texts(size_t B, size_t T, Heads n, const ScoreRule& rule) {
  CAPTURE(B);
  CAPTURE(T);
  CAPTURE(n.H);
  CAPTURE(n.G);
  CAPTURE(n.D);
  CAPTURE(rule.mask.is_causal);
  CAPTURE(rule.mask.window);
  CAPTURE(rule.cap);
  const Texts x(n, B * T);
  const AttentionGradients got = by_flash(x, B, n, rule);
  for (size_t b = 0; b < B; ++b) {
    Texts text = x;
    for (Tensor<2>* part : {&text.q, &text.k, &text.v, &text.dout})
      *part = rows_of(*part, b * T, T);
    const AttentionGradients want = formula(text, n, rule);
    for (const auto& [all, of_text] :
         {std::pair(&got.q, &want.q), {&got.k, &want.k}, {&got.v, &want.v}}) {
      const double largest = std::max(1.f, xt::amax(xt::abs(*of_text))());
      CHECK(all_close(rows_of(*all, b * T, T), *of_text, bound(n, T, T, largest)));
    }
  }
}

TEST_CASE("block by block as by the formula: lengths around a block, widths, groups, windows") {
  // A block has 48 queries, those of 48, 24, 16, 12 or 9 tokens or of one, and 64 keys.
  const std::vector<Heads> heads = {{1, 1, 1},  {2, 1, 5},  {6, 2, 10}, {4, 1, 16},
                                    {5, 1, 24}, {4, 4, 33}, {50, 1, 2}};
  size_t n = 0;
  for (const size_t T : {1, 2, 7, 48, 49, 64, 65, 130})
    for (const Heads& of : heads) {
      const std::vector<Mask> masks = {Mask::causal,      Mask::sliding(1),  Mask::none,
                                       Mask::sliding(20), Mask::sliding(64), Mask::sliding(T)};
      check_texts(1 + n % 3, T, of, masks[n % masks.size()]);
      const std::vector<ScoreRule> others = other_rules();
      check_texts(1 + n % 2, T, of, others[n % others.size()]);
      ++n;
    }
}

TEST_CASE("only the keys that a query sees get a gradient, and all of them do") {
  const Heads n{4, 2, 5};
  const size_t T = 70;
  for (const Mask mask : {Mask::causal, Mask::sliding(20)})
    for (const size_t t : {0, 1, 19, 20, 47, 48, 69}) {
      CAPTURE(t);
      Texts x(n, T);
      for (size_t other = 0; other < T; ++other)
        if (other != t) std::ranges::fill(row(x.dout, other), 0.0f);
      for (const auto backward : {formula, kernel}) {
        const AttentionGradients got = backward(x, n, mask);
        size_t wrong = 0;
        const auto none = [](ConstRow x) { return std::ranges::count(x, 0) == long(x.size()); };
        for (size_t s = 0; s < T; ++s) {
          wrong += none(row(got.v, s)) == sees(t, s, mask);
          wrong += !sees(t, s, mask) && !none(row(got.k, s));
          wrong += s != t && !none(row(got.q, s));
        }
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("no bit depends on what comes later, or on gradients of what came before") {
  const Heads n{4, 2, 5};
  const size_t T = 70, t = 50;
  const Texts x(n, T);
  Texts early = x, late = x;
  for (size_t s = 0; s < t; ++s) std::ranges::fill(row(early.dout, s), 3.0f);
  for (size_t s = t; s < T; ++s)
    for (Tensor<2>* part : {&late.q, &late.k, &late.v}) std::ranges::fill(row(*part, s), 2.0f);
  for (const auto backward : {formula, kernel}) {
    const AttentionGradients before = backward(x, n, Mask::causal);
    // Keys from t on are read by queries from t on alone.
    const AttentionGradients after = backward(early, n, Mask::causal);
    CHECK(all_close(rows_of(after.k, t, T - t), rows_of(before.k, t, T - t), 0));
    CHECK(all_close(rows_of(after.v, t, T - t), rows_of(before.v, t, T - t), 0));
    CHECK(all_close(rows_of(after.q, t, T - t), rows_of(before.q, t, T - t), 0));
    CHECK(rows_of(after.v, 0, t) != rows_of(before.v, 0, t));
    CHECK(all_close(rows_of(backward(late, n, Mask::causal).q, 0, t), rows_of(before.q, 0, t), 0));
  }
}

TEST_CASE("keys' gradients add up to 0, those of values to dout") {
  // A vector added to all keys changes all scores of a query alike, and no weight; one added to all
  // values is added to all of out.
  const Heads n{6, 2, 5};
  const size_t T = 70;
  const Texts x(n, T);
  for (const Mask mask : {Mask::causal, Mask::sliding(20), Mask::none})
    for (const auto backward : {formula, kernel}) {
      const AttentionGradients got = backward(x, n, mask);
      double worst = 0;
      for (size_t c = 0; c < n.G * n.D; ++c) {
        double of_keys = 0, of_values = 0, douts = 0;
        for (size_t s = 0; s < T; ++s) of_keys += double(got.k(s, c));
        for (size_t s = 0; s < T; ++s) of_values += double(got.v(s, c));
        for (size_t h = c / n.D * 3; h < c / n.D * 3 + 3; ++h)
          for (size_t t = 0; t < T; ++t) douts += double(x.dout(t, h * n.D + c % n.D));
        worst = std::max({worst, std::abs(of_keys), std::abs(of_values - douts)});
      }
      CHECK(worst <= std::sqrt(double(T)) * bound(n, T, T, 1));  // of T numbers
    }
}

TEST_CASE("the texts of a batch do not touch each other, nor does what scratch memory held") {
  const Heads n{4, 2, 5};
  const size_t B = 3, T = 50;
  const Texts x(n, B * T);
  const AttentionGradients before = by_flash(x, B, n, Mask::causal);
  Texts changed = x;
  for (Tensor<2>* part : {&changed.q, &changed.k, &changed.v, &changed.dout})
    xt::view(*part, xt::range(T, 2 * T), xt::all()) = NAN;
  // Scratch for more of everything; its first call leaves NaN in it.
  FlashBackwardScratch scratch(8, 2, 16, 80);
  const Tensor<2> out = forward(x, B, n, Mask::causal);
  AttentionGradients got = before;
  const auto call = [&](const Texts& x) {
    flash_backward({x.q, x.k, x.v, out, x.dout}, B, n.H, n.G, Mask::causal, {got.q, got.k, got.v},
                   scratch);
  };
  call(changed);
  for (const auto& [x, y] :
       {std::pair(&got.q, &before.q), {&got.k, &before.k}, {&got.v, &before.v}})
    for (const size_t b : {0, 2}) CHECK(all_close(rows_of(*x, b * T, T), rows_of(*y, b * T, T), 0));
  const auto nans = std::ranges::count_if(got.q, [](float x) { return std::isnan(x); });
  CHECK(nans == long(T * n.H * n.D));
  call(x);
  CHECK(same_bits(got, before));
}

TEST_CASE("a NaN reaches the gradients that it has a part in") {
  const Heads n{2, 1, 5};
  const size_t T = 50, t = 20;
  const auto all_nan = [](ConstRow x) {
    return Closeness{std::ranges::all_of(x, [](float number) { return std::isnan(number); }),
                     fmt::format("got {}, wanted NaN alone", fmt::join(x, ", "))};
  };
  for (const auto backward : {formula, kernel})
    for (size_t part = 0; part < 4; ++part) {
      CAPTURE(part);
      Texts x(n, T);
      Tensor<2>* const parts[] = {&x.q, &x.k, &x.v, &x.dout};
      (*parts[part])(t, 2) = NAN;
      const AttentionGradients got = backward(x, n, Mask::causal);
      CHECK(all_nan(row(got.q, t).first(n.D)));  // head 0 reads and has all of them
      CHECK(all_nan(row(got.k, t)));
      if (part < 2) CHECK(all_nan(row(got.v, t)));  // its weights
      CAPTURE(got.v(t, 2));
      if (part == 3) CHECK(std::isnan(got.v(t, 2)));
    }
}

TEST_CASE("flash_backward reads and writes parts of wider rows, and nothing beside them") {
  const Heads n{4, 2, 5};
  const size_t T = 50, B = 2, HD = n.H * n.D, GD = n.G * n.D, wide = HD + 2 * GD + 3;
  const Texts x(n, B * T);
  const AttentionGradients want = by_flash(x, B, n, Mask::sliding(9));
  Tensor<2> fused = empty(B * T, wide), gradients = xt::ones<float>({B * T, wide});
  Tensor<2> want_all = gradients;
  const auto put = [&](const Tensor<2>& from, Tensor<2>& to, size_t column) {
    xt::view(to, xt::all(), xt::range(column, column + from.shape(1))) = from;
  };
  put(x.q, fused, 0), put(x.k, fused, HD), put(x.v, fused, HD + GD);
  put(want.q, want_all, 1), put(want.k, want_all, HD + 2), put(want.v, want_all, HD + GD + 2);
  const Tensor<2> out = forward(x, B, n, Mask::sliding(9));
  const ConstMatrix in = fused;
  const Matrix to = gradients;
  FlashBackwardScratch scratch(n.H, n.G, n.D, T);
  flash_backward(
      {in.cols_from(0, HD), in.cols_from(HD, GD), in.cols_from(HD + GD, GD), out, x.dout}, B, n.H,
      n.G, Mask::sliding(9),
      {to.cols_from(1, HD), to.cols_from(HD + 2, GD), to.cols_from(HD + GD + 2, GD)}, scratch);
  CHECK(all_close(gradients, want_all, 0));
}

TEST_CASE("flash_backward: the same bits on one thread, two and three; and nothing is allocated") {
  const Heads n{4, 2, 24};
  const size_t B = 3, T = 65, threads = thread_count();
  const Texts x(n, B * T);
  set_threads(1);
  const AttentionGradients one = by_flash(x, B, n, Mask::causal);
  for (const int count : {2, 3, 2}) {
    CAPTURE(count);
    set_threads(count);
    CHECK(same_bits(by_flash(x, B, n, Mask::causal), one));
  }
  FlashBackwardScratch scratch(n.H, n.G, n.D, T);
  const Tensor<2> out = forward(x, B, n, Mask::causal);
  AttentionGradients got = one;
  CHECK(allocates_nothing(3, [&] {
    flash_backward({x.q, x.k, x.v, out, x.dout}, B, n.H, n.G, Mask::causal, {got.q, got.k, got.v},
                   scratch);
  }));
  set_threads(int(threads));
}

TEST_CASE("softmax and attention's formula refuse shapes that disagree") {
  const Heads n{4, 2, 3};
  const Texts x(n, 5);
  const Tensor<2> narrow = xt::ones<float>({5, 5}), shorter = xt::ones<float>({4, 6});
  REFUSES(softmax_backward(narrow, shorter), "dweights: wanted shape [5, 5], got [4, 6]");
  const auto call = [&](const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, size_t H,
                        size_t G, Mask mask = Mask::causal) {
    return attention_backward(q, k, v, H, G, mask, x.dout);
  };
  REFUSES(call(x.q, x.k, x.v, 4, 3),
          "groups: wanted G key and value heads that divide H query heads, got H = 4, G = 3");
  REFUSES(call(x.q, x.k, x.v, 5, 1), "heads: wanted a number H that divides C = 12, got H = 5");
  const Tensor<2> q = xt::ones<float>({5, 8}), k = xt::ones<float>({5, 4});  // D = 2
  REFUSES(call(q, k, k, 4, 2), "dout: wanted shape [5, 8], got [5, 12]");
  REFUSES(call(x.q, narrow, x.v, 4, 2), "k: wanted shape [5, 6], got [5, 5]");
  REFUSES(call(x.q, x.k, shorter, 4, 2), "v: wanted shape [5, 6], got [4, 6]");
  REFUSES(call(x.q, shorter, shorter, 4, 2),
          "causal mask: wanted at least as many keys as queries, got 4 and 5");
  REFUSES(call(x.q, x.k, x.v, 4, 2, {false, 3}),
          "window: wanted 0, since the mask is not causal, got 3");
}

TEST_CASE("flash_backward refuses shapes that disagree, and too little scratch memory") {
  const Heads n{4, 2, 3};
  const Texts x(n, 6);
  Tensor<2> to_q = x.q, to_k = x.k, to_v = x.v, narrow = xt::ones<float>({6, 5});
  FlashBackwardScratch scratch(4, 2, 3, 6), small(4, 2, 3, 2);
  const AttentionPass pass{x.q, x.k, x.v, x.q, x.dout};
  const AttentionGradientRows to{to_q, to_k, to_v};
  const auto call = [&](AttentionPass in, AttentionGradientRows out, size_t B, size_t H, size_t G,
                        Mask mask, FlashBackwardScratch& with) {
    flash_backward(in, B, H, G, mask, out, with);
  };
  REFUSES(call(pass, to, 1, 4, 3, Mask::causal, scratch),
          "groups: wanted G key and value heads that divide H query heads, got H = 4, G = 3");
  for (const size_t B : {0, 4})
    REFUSES(call(pass, to, B, 4, 2, Mask::causal, scratch),
            "B, the sequences: wanted a divisor of the rows, got " + std::to_string(B));
  REFUSES(call(pass, to, 1, 5, 1, Mask::causal, scratch), "q: wanted shape [6, 10], got [6, 12]");
  REFUSES(call(pass, to, 2, 4, 2, {false, 2}, scratch),
          "window: wanted 0, since the mask is not causal, got 2");
  const auto in = [&](auto part) {
    AttentionPass changed = pass;
    changed.*part = ConstMatrix(narrow);
    return changed;
  };
  const auto out = [&](auto part) {
    AttentionGradientRows changed = to;
    changed.*part = Matrix(narrow);
    return changed;
  };
  const auto refused = [&](AttentionPass in, AttentionGradientRows out,
                           const std::string& message) {
    REFUSES(call(in, out, 1, 4, 2, Mask::causal, scratch), message);
  };
  refused(in(&AttentionPass::k), to, "k: wanted shape [6, 6], got [6, 5]");
  refused(in(&AttentionPass::v), to, "v: wanted shape [6, 6], got [6, 5]");
  refused(in(&AttentionPass::out), to, "out: wanted shape [6, 12], got [6, 5]");
  refused(in(&AttentionPass::dout), to, "dout: wanted shape [6, 12], got [6, 5]");
  refused(pass, out(&AttentionGradientRows::q), "dq: wanted shape [6, 12], got [6, 5]");
  refused(pass, out(&AttentionGradientRows::k), "dk: wanted shape [6, 6], got [6, 5]");
  refused(pass, out(&AttentionGradientRows::v), "dv: wanted shape [6, 6], got [6, 5]");

  const std::string threads = std::to_string(thread_count());
  REFUSES(call(pass, to, 1, 4, 2, Mask::causal, small),
          "scratch: made for H = 4, G = 2, D = 3, S = 2 and " + threads +
              " threads, wanted H = 4, G = 2, D = 3, S = 6 and " + threads);
  CHECK_NOTHROW(call(pass, to, 3, 4, 2, Mask::causal, small));  // three texts of two tokens
  CHECK(small.bytes() < scratch.bytes());
  REFUSES(FlashBackwardScratch(4, 3, 3, 6),
          "groups: wanted G key and value heads that divide H query heads, got H = 4, G = 3");
  REFUSES(FlashBackwardScratch(4, 2, 0, 6), "D, the width of a head: wanted at least 1, got 0");
}

// RoPE.

TEST_CASE("by hand: a quarter turn is undone, and a magnitude is kept") {
  // Forward, (a, b) becomes 2·(−b, a). The gradient (1, 0) of the result is then 2·(0, −1) of x:
  // the first number of the result grows as b falls.
  const RopeTable quarter{{{0}}, {{2}}};
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    CHECK(all_close(rope({{3, 4}}, 2, quarter, 0, pairing), Tensor<2>{{-8, 6}}, 0));
    Tensor<2> dx = {{1, 0}};
    rope_rows(dx, 2, backward_table(quarter), 0, pairing);
    CHECK(all_close(dx, Tensor<2>{{0, -2}}, 0));
  }
}

/// RoPE in float64 of heads of D numbers, for tokens from position `start` on.
static Doubles turned(const Doubles& x, size_t D, size_t start, double magnitude, Pairing pairing) {
  const Frequencies frequencies = rope_frequencies(D);
  Doubles y(x.rows, x.cols);
  for (size_t t = 0; t < x.rows; ++t)
    for (size_t first = 0; first < x.cols; first += D)
      for (size_t i = 0; i < D / 2; ++i) {
        const bool halves = pairing == Pairing::halves;
        const size_t a = first + (halves ? i : 2 * i);
        const size_t b = first + (halves ? i + D / 2 : 2 * i + 1);
        const double angle = double(start + t) * frequencies[i];
        const double cos = magnitude * std::cos(angle), sin = magnitude * std::sin(angle);
        y(t, a) = x(t, a) * cos - x(t, b) * sin;
        y(t, b) = x(t, a) * sin + x(t, b) * cos;
      }
  return y;
}

TEST_CASE("RoPE and attention together are what finite differences give, with both pairings") {
  const Heads n{4, 2, 6};
  const size_t T = 5, start = 3;
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves})
    for (const float magnitude : {1.0f, 1.25f}) {
      const RopeTable table = rope_table(start + T, rope_frequencies(n.D), magnitude);
      const Texts x(n, T);
      Doubles q(x.q), k(x.k), v(x.v);
      const auto turn = [&](const Doubles& x) {
        return turned(x, n.D, start, double(magnitude), pairing);
      };
      // A turn alone …
      Tensor<2> alone = x.dout;
      rope_rows(alone, n.D, backward_table(table), start, pairing);
      CHECK(all_close(alone, by_differences(q, [&] { return dot(x.dout, turn(q)); }), 8 * u));
      // … and before attention, which reads rotated queries and keys.
      const auto loss = [&] { return dot(x.dout, attend(turn(q), turn(k), v, n, Mask::causal)); };
      Texts read = x;
      read.q = rope(x.q, n.D, table, start, pairing);
      read.k = rope(x.k, n.D, table, start, pairing);
      for (const auto backward : {formula, kernel}) {
        AttentionGradients got = backward(read, n, Mask::causal);
        rope_rows(got.q, n.D, backward_table(table), start, pairing);
        rope_rows(got.k, n.D, backward_table(table), start, pairing);
        CHECK(all_close(got.q, by_differences(q, loss), bound(n, T, T, 2)));
        CHECK(all_close(got.k, by_differences(k, loss), bound(n, T, T, 2)));
        CHECK(all_close(got.v, by_differences(v, loss), bound(n, T, T, 2)));
      }
    }
}

TEST_CASE("a turn and its way back leave x, times the square of the magnitude") {
  const RopeTable table = rope_table(40, rope_frequencies(10), 1.5f);
  const Tensor<2> x = numbers(1, 2, 0, 20, 30);
  for (const Pairing pairing : {Pairing::neighbours, Pairing::halves}) {
    Tensor<2> back = rope(x, 10, table, 20, pairing);
    rope_rows(back, 10, backward_table(table), 20, pairing);
    CHECK(all_close(back, Tensor<2>(2.25f * x), 16 * u));
  }
}

}  // namespace t2t::attention_test
