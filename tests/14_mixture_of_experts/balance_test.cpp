// What must be true of what balances the load.
#include "14_mixture_of_experts/training/balance.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "13_training/differences.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::balance_test {

using std::size_t;

/// Two tokens of three experts: both take expert 0, then one takes 1 and one takes 2.
static Routed two_tokens() {
  return {.scores = {{2, 1, 0}, {2, 0, 1}},
          .p = {{0.5f, 0.3f, 0.2f}, {0.6f, 0.1f, 0.3f}},
          .experts = {0, 1, 0, 2},
          .weights = {{0.625f, 0.375f}, {2 / 3.0f, 1 / 3.0f}}};
}

TEST_CASE("by hand: loads, and Switch's loss of one layer") {
  const Routed routed = two_tokens();
  CHECK(all_close(as_matrix(loads_of(routed.experts, 3)), {{0.5f, 0.25f, 0.25f}}, 1e-6));
  // f = (1/2, 1/4, 1/4), P = (0.55, 0.2, 0.25): 3·(0.275 + 0.05 + 0.0625) = 1.1625.
  Tensor<2> dp = zeros(2, 3);
  CHECK(balance_loss(routed, 1, dp) == doctest::Approx(1.1625));
  // Each p is half of its P: 3·f/2.
  CHECK(all_close(dp, {{0.75f, 0.375f, 0.375f}, {0.75f, 0.375f, 0.375f}}, 1e-6));
  CHECK(balance_loss(routed, 0.01f, dp) == doctest::Approx(0.011625));
  CHECK(dp(1, 0) == doctest::Approx(0.7575));  // added to what was there
}

TEST_CASE("an even load has a loss of 1 for any number of experts, and a worse one a larger loss") {
  for (const size_t E : {2, 4, 16}) {
    Routed even{zeros(E, E), zeros(E, E), {}, empty(E, 1)};
    even.p.fill(1 / float(E));
    for (size_t e = 0; e < E; ++e) even.experts.push_back(e);
    Tensor<2> dp = zeros(E, E);
    CHECK(balance_loss(even, 1, dp) == doctest::Approx(1));
    Routed collapsed = even;
    std::ranges::fill(collapsed.experts, size_t(0));
    collapsed.p.fill(0);
    xt::col(collapsed.p, 0) = 1;
    CHECK(balance_loss(collapsed, 1, dp) == doctest::Approx(double(E)));
  }
}

TEST_CASE("the z-loss and its gradient, by finite differences in float64") {
  const Tensor<2> scores = numbers(3, 3, 1, 4, 5);
  Tensor<2> same = zeros(5, 5);
  for (size_t e = 0; e < 5; ++e) same(e, e) = 1;
  Routed routed = route(scores, same, {.k = 2});
  Tensor<2> dscores = zeros(4, 5);
  const double loss = z_loss(routed, 0.5f, dscores);
  Doubles at(routed.scores);
  const auto in_double = [&] {
    double sum = 0;
    for (size_t t = 0; t < 4; ++t) {
      double exponentials = 0;
      for (size_t e = 0; e < 5; ++e) exponentials += std::exp(at(t, e));
      sum += std::log(exponentials) * std::log(exponentials);
    }
    return 0.5 * sum / 4;
  };
  CHECK(loss == doctest::Approx(in_double()).epsilon(1e-6));
  CHECK(all_close(dscores, by_differences(at, in_double), rounding(5, 4)));
  routed.scores.fill(1e30f);  // neither overflows
  CHECK(std::isfinite(z_loss(routed, 1e-30f, dscores)));
  // By hand: of five scores of −1000, ln Σ e^score is ln 5 − 1000, though float64's e^−1000 is 0.
  const double log_sum = std::log(5.0) - 1000;
  routed.scores.fill(-1000.0f), dscores.fill(0.0f);
  CHECK(z_loss(routed, 1, dscores) == doctest::Approx(log_sum * log_sum));
  Tensor<2> slopes = zeros(4, 5);  // 2·log_sum·(1/5), and a mean over four tokens
  slopes.fill(float(2 * log_sum / 5 / 4));
  CHECK(all_close(dscores, slopes, rounding(5, 128)));
}

TEST_CASE("a bias grows where there are too few choices, and shrinks where there are too many") {
  Tensor<1> bias = {0.5f, 0, 0, 0};
  adjust_bias({0.4f, 0.1f, 0.25f, 0.25f}, 0.125f, bias);
  CHECK(all_close(as_matrix(bias), {{0.375f, 0.125f, 0, 0}}, 0));
  Tensor<1> wrong = zeros(3);
  REFUSES(adjust_bias({0.5f, 0.5f}, 1, wrong), "bias: wanted shape [2], got [3]");
}

TEST_CASE("beyond the capacity, later tokens are dropped, and earlier ones are not touched") {
  Routed routed = two_tokens();
  CHECK(limit_to(1, routed) == 1);
  CHECK(all_close(routed.weights, {{0.625f, 0.375f}, {0, 1 / 3.0f}}, 1e-6));
  Routed roomy = two_tokens();
  CHECK(limit_to(2, roomy) == 0);
  CHECK(all_close(roomy.weights, two_tokens().weights, 0));
  CHECK(capacity_of(64, 2, 8, 1) == 16);
  CHECK(capacity_of(64, 2, 8, 1.25) == 20);
  CHECK(capacity_of(3, 1, 8, 1) == 1);
  REFUSES(limit_to(0, routed), "capacity: wanted at least 1, got 0");
}

TEST_CASE("what a token gets under a capacity does not depend on the tokens after it") {
  const Tensor<2> scores = numbers(3, 2, 0, 8, 4);
  Tensor<2> same = zeros(4, 4);
  for (size_t e = 0; e < 4; ++e) same(e, e) = 1;
  Routed all = route(scores, same, {.k = 2}), fewer = route(rows_of(scores, 0, 5), same, {.k = 2});
  limit_to(2, all), limit_to(2, fewer);
  CHECK(all_close(rows_of(all.weights, 0, 5), fewer.weights, 0));
}

TEST_CASE("expert choice fills every expert, and looks at tokens that come later") {
  const Tensor<2> p = {{0.9f, 0.1f}, {0.8f, 0.2f}, {0.6f, 0.4f}};
  const auto chosen = expert_choice(p, 2);
  CHECK(chosen == std::vector<std::vector<size_t>>{{0}, {0, 1}, {1}});
  // Without token 2, token 0 gets expert 1 as well: what it gets depends on a token after it.
  CHECK(expert_choice(rows_of(p, 0, 2), 2)[0] == std::vector<size_t>{0, 1});
  // Of tokens with equal p, an expert takes the earlier ones.
  const Tensor<2> equal = {{0.5f, 0.3f}, {0.5f, 0.7f}, {0.5f, 0.7f}, {0.5f, 0.3f}};
  CHECK(expert_choice(equal, 2) == std::vector<std::vector<size_t>>{{0}, {0, 1}, {1}, {}});
  CHECK(expert_choice(equal, 3) == std::vector<std::vector<size_t>>{{0, 1}, {0, 1}, {0, 1}, {}});
  REFUSES(expert_choice(p, 4), "capacity: wanted 1 to T = 3, got 4");
  REFUSES(expert_choice(p, 0), "capacity: wanted 1 to T = 3, got 0");
}

TEST_CASE("loads need choices, and experts that exist") {
  REFUSES(loads_of({}, 3), "choices: wanted at least 1, got 0");
  const std::vector<size_t> experts = {0, 3};
  REFUSES(loads_of(experts, 3), "an expert: wanted below E = 3, got 3");
  Tensor<2> dp = zeros(2, 2);
  REFUSES(balance_loss(two_tokens(), 1, dp), "dp: wanted shape [2, 3], got [2, 2]");
  REFUSES(z_loss(two_tokens(), 1, dp), "dscores: wanted shape [2, 3], got [2, 2]");
}

}  // namespace t2t::balance_test
