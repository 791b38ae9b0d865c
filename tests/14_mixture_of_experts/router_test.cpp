// What must be true of a router: cases by hand, ties, and its gradients.
#include "14_mixture_of_experts/router.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "13_training/differences.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::router_test {

using std::size_t;
using Experts = std::vector<size_t>;

/// A router that gives x itself as scores.
static Tensor<2> as_scores(size_t E) {
  Tensor<2> router = zeros(E, E);
  for (size_t e = 0; e < E; ++e) router(e, e) = 1;
  return router;
}
static Routed routed_of(const Tensor<2>& scores, const RouterSettings& settings,
                        const Tensor<1>& bias = {}) {
  return route(scores, as_scores(scores.shape(1)), settings, row(bias));
}

TEST_CASE("by hand: softmax over all experts, then the weights of the chosen") {
  // e^0 : e^ln2 : e^ln3 : e^ln4 is 1 : 2 : 3 : 4, and their sum is 10.
  const Tensor<2> scores = {{0, std::log(2.0f), std::log(3.0f), std::log(4.0f)}};
  const Routed shares = routed_of(scores, {.k = 2, .normalized = false});
  CHECK(all_close(shares.scores, scores, 0));
  CHECK(all_close(shares.p, {{0.1f, 0.2f, 0.3f, 0.4f}}, 1e-6));
  CHECK(shares.experts == Experts{3, 2});
  CHECK(all_close(shares.weights, {{0.4f, 0.3f}}, 1e-6));
  CHECK(all_close(routed_of(scores, {.k = 1, .normalized = false}).weights, {{0.4f}}, 1e-6));
  const Routed normalized = routed_of(scores, {.k = 2});
  CHECK(all_close(normalized.weights, {{4 / 7.0f, 3 / 7.0f}}, 1e-6));
  CHECK(all_close(normalized.p, shares.p, 1e-6));
}

TEST_CASE("by hand: sigmoids, and a bias that changes the choice but not the weights") {
  // The sigmoid of ln(a) is a / (1 + a): 1/2, 3/4 and 1/4.
  const Tensor<2> scores = {{0, std::log(3.0f), -std::log(3.0f)}};
  const RouterSettings settings{.k = 2, .scoring = Scoring::sigmoid};
  const Routed routed = routed_of(scores, settings);
  CHECK(all_close(routed.p, {{0.5f, 0.75f, 0.25f}}, 1e-6));
  CHECK(routed.experts == Experts{1, 0});
  CHECK(all_close(routed.weights, {{0.6f, 0.4f}}, 1e-6));
  const Routed other = routed_of(scores, settings, {0, 0, 0.7f});
  CHECK(other.experts == Experts{2, 1});  // 0.25 + 0.7 is the largest
  CHECK(all_close(other.weights, {{0.25f, 0.75f}}, 1e-6));
  // Sums of −1.5, −2.25 and −3.75: the largest are chosen even if all are far below 0.
  const Routed below = routed_of(scores, settings, {-2, -3, -4});
  CHECK(below.experts == Experts{0, 1});
  CHECK(all_close(below.weights, {{0.4f, 0.6f}}, 1e-6));
}

TEST_CASE("of equal scores the lower index is chosen, and huge scores do not overflow") {
  CHECK(routed_of({{1, 1, 1, 1}}, {.k = 3}).experts == Experts{0, 1, 2});
  CHECK(routed_of({{0, 2, 1, 2}}, {.k = 2}).experts == Experts{1, 3});
  const Routed huge = routed_of({{1e30f, -1e30f}, {-200, 200}}, {.k = 2});
  CHECK(huge.experts == Experts{0, 1, 1, 0});
  CHECK(all_close(huge.weights, {{1, 0}, {1, 0}}, 1e-6));
}

TEST_CASE("of 300 experts, the chosen are the first of all, sorted by p") {
  const Routed routed = routed_of(numbers(1, 3, 0, 4, 300), {.k = 60});
  for (size_t t = 0; t < 4; ++t) {
    Experts sorted(300);
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::ranges::sort(sorted, [&](size_t a, size_t b) {
      return std::pair(-routed.p(t, a), a) < std::pair(-routed.p(t, b), b);
    });
    sorted.resize(60);
    const auto first = routed.experts.begin() + long(60 * t);
    CHECK(Experts(first, first + 60) == sorted);
  }
}

TEST_CASE("normalized weights add up to 1 however small the chosen p are, and have gradients") {
  const RouterSettings sigmoids{.k = 2, .scoring = Scoring::sigmoid};
  for (const float score : {-60.0f, -100.0f, -1e30f}) {
    CAPTURE(score);
    const Routed low = routed_of({{score, score, score}}, sigmoids);
    CHECK(all_close(low.weights, {{0.5f, 0.5f}}, 1e-6));
    CHECK(all_close(route_backward(low, sigmoids, {{1, -1}}), {{0.5f, -0.5f, 0}}, 1e-6));
    // A bias chooses what softmax leaves nothing for.
    const Routed other = routed_of({{-score, 0, 0}}, {.k = 2}, {0, 2, 2});
    CHECK(other.experts == Experts{1, 2});
    CHECK(all_close(other.weights, {{0.5f, 0.5f}}, 1e-6));
  }
  // A choice that was dropped still has its p in the sum.
  Routed routed = routed_of({{0, 1, 2}}, {.k = 2});
  const Tensor<2> gradient = route_backward(routed, {.k = 2}, {{1, 0}});
  routed.weights(0, 1) = 0;
  CHECK(all_close(route_backward(routed, {.k = 2}, {{1, 0}}), gradient, 1e-6));
  // 1 / (1 + e^−2) of the larger one, and of the two smallest the larger p is chosen.
  const Routed tiny = routed_of({{-80, -70, -72}}, sigmoids);
  CHECK(tiny.experts == Experts{1, 2});
  CHECK(all_close(tiny.weights, {{0.880797f, 0.119203f}}, 1e-5));
}

TEST_CASE("each token is routed by itself, and its weights add up to 1 if they are normalized") {
  const Tensor<2> x = numbers(1, 2, 0, 9, 12), router = numbers(2, 1, 0, 7, 12);
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid}) {
    const RouterSettings settings{.k = 3, .scoring = scoring};
    const Routed all = route(x, router, settings);
    for (size_t t = 0; t < 9; ++t) {
      CHECK(xt::sum(xt::row(all.weights, long(t)))() == doctest::Approx(1));
      const Routed one = route(rows_of(x, t, 1), router, settings);
      CHECK(one.experts ==
            Experts(all.experts.begin() + long(3 * t), all.experts.begin() + long(3 * t + 3)));
    }
    if (scoring == Scoring::softmax)
      for (size_t t = 0; t < 9; ++t)
        CHECK(xt::sum(xt::row(all.p, long(t)))() == doctest::Approx(1));
  }
}

/// The weights of a token's chosen experts, in float64.
static Doubles weights_of(const Doubles& scores, const Experts& experts,
                          const RouterSettings& settings) {
  const size_t T = scores.rows, E = scores.cols, k = settings.k;
  Doubles weights(T, k);
  for (size_t t = 0; t < T; ++t) {
    std::vector<double> p(E);
    double sum = 0;
    for (size_t e = 0; e < E; ++e) sum += p[e] = std::exp(scores(t, e));
    for (size_t e = 0; e < E; ++e)
      p[e] = settings.scoring == Scoring::softmax ? p[e] / sum : p[e] / (1 + p[e]);
    double of_chosen = 0;
    for (size_t i = 0; i < k; ++i) of_chosen += p[experts[t * k + i]];
    for (size_t i = 0; i < k; ++i)
      weights(t, i) = p[experts[t * k + i]] / (settings.normalized ? of_chosen : 1);
  }
  return weights;
}

TEST_CASE("the gradient of the scores is that of finite differences in float64, choice unchanged") {
  const Tensor<2> scores = numbers(3, 2, 0, 5, 6);
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid})
    for (const bool normalized : {true, false})
      for (const size_t k : {1, 2, 6}) {
        CAPTURE(normalized);
        CAPTURE(k);
        const RouterSettings settings{k, scoring, normalized};
        const Tensor<2> dweights = numbers(4, 2, 0, 5, k);
        const Routed routed = routed_of(scores, settings);
        Doubles at(scores);
        const auto loss = [&] { return dot(dweights, weights_of(at, routed.experts, settings)); };
        // Sums of at most 6 products of numbers up to 4.
        CHECK(all_close(route_backward(routed, settings, dweights), by_differences(at, loss),
                        rounding(24, 8)));
      }
}

TEST_CASE("one expert whose weight is normalized to 1 gives the router nothing to learn from") {
  const Routed routed = routed_of(numbers(3, 2, 0, 5, 6), {.k = 1});
  CHECK(all_close(routed.weights, Tensor<2>(xt::ones<float>({5, 1})), 1e-6));
  CHECK(all_close(route_backward(routed, {.k = 1}, numbers(4, 2, 0, 5, 1)), zeros(5, 6), 1e-6));
}

TEST_CASE("the gradient of a loss on p, too") {
  const Tensor<2> scores = numbers(3, 2, 0, 5, 6), dp = numbers(5, 2, 0, 5, 6);
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid}) {
    const RouterSettings settings{6, scoring, false};
    const Routed routed = routed_of(scores, settings);
    Doubles at(scores);
    const auto loss = [&] {
      double sum = 0;
      const Doubles weights = weights_of(at, routed.experts, settings);
      for (size_t t = 0; t < 5; ++t)
        for (size_t i = 0; i < 6; ++i)
          sum += double(dp(t, routed.experts[t * 6 + i])) * weights(t, i);
      return sum;
    };
    CHECK(all_close(scores_backward(routed.p, scoring, dp), by_differences(at, loss),
                    rounding(24, 8)));
  }
}

TEST_CASE("a router refuses what it can't route") {
  const Tensor<2> x = numbers(1, 2, 0, 4, 3), router = numbers(2, 1, 0, 5, 3);
  REFUSES(route(x, router, {.k = 0}), "k, the experts of a token: wanted 1 to E = 5, got 0");
  REFUSES(route(x, router, {.k = 6}), "k, the experts of a token: wanted 1 to E = 5, got 6");
  const Tensor<1> bias = zeros(4);
  REFUSES(route(x, router, {.k = 2}, row(bias)), "elements of the bias: wanted 0 or E = 5, got 4");
  Tensor<2> broken = x;
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -3e38f})
    for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid}) {
      broken(2, 1) = broken(3, 0) = value;
      REFUSES(route(broken, numbers(2, 9, 0, 5, 3), {.k = 2, .scoring = scoring}),
              "scores of token 2: wanted finite numbers, got others");
    }
  const Routed routed = route(x, router, {.k = 2});
  REFUSES(route_backward(routed, {.k = 2}, zeros(4, 3)),
          "dweights: wanted shape [4, 2], got [4, 3]");
  REFUSES(scores_backward(routed.p, Scoring::softmax, zeros(4, 4)),
          "dp: wanted shape [4, 5], got [4, 4]");
}

TEST_CASE("a row of scores that are not all finite is refused, and nothing is written") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid})
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
      CAPTURE(value);
      Tensor<1> scores = {1, 2, value, 3}, weights = {5, 6};
      Experts experts = {7, 8};
      CHECK_FALSE(route_row(row(scores), {.k = 2, .scoring = scoring}, {}, experts, row(weights)));
      CHECK(experts == Experts{7, 8});
      CHECK(all_close(as_matrix(weights), {{5, 6}}, 0));
      CHECK(scores(0) == 1);
      CHECK(scores(3) == 3);
    }
}

}  // namespace t2t::router_test
