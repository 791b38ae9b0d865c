// What must be true of three estimates of a KL divergence: which mean their values have, and which
// gradient they give on average. All means are exact sums over all tokens.
#include "17_fine_tuning/rewards/kl.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "17_fine_tuning/bigrams.hpp"
#include "support/all_close.hpp"

namespace t2t::kl_test {

using std::size_t;

/// The probabilities after each token [V, V], and a share for each token before.
static double p_at(const Doubles& table, size_t before, size_t token) {
  return std::exp(bigram_log_p(table, int(before), int(token)));
}
static constexpr double shares[3] = {0.5, 0.3, 0.2};

/// Σ over tokens before of their share, times KL(p‖q) of the tokens after it.
static double divergence(const Doubles& p, const Doubles& q) {
  double sum = 0;
  for (size_t s = 0; s < 3; ++s)
    for (size_t v = 0; v < 3; ++v)
      sum += shares[s] * p_at(p, s, v) * std::log(p_at(p, s, v) / p_at(q, s, v));
  return sum;
}

/// The mean of an estimate's values over tokens that p draws.
static double mean_value(KlEstimate (*estimate)(double), const Doubles& p, const Doubles& ref) {
  double sum = 0;
  for (size_t s = 0; s < 3; ++s)
    for (size_t v = 0; v < 3; ++v)
      sum += shares[s] * p_at(p, s, v) * estimate(std::log(p_at(p, s, v) / p_at(ref, s, v))).value;
  return sum;
}

/// The mean gradient of a loss of estimates, through weighted_loss_rows: a token's weight is minus
/// its slope.
static Tensor<2> mean_gradient(KlEstimate (*estimate)(double), const Doubles& p,
                               const Doubles& ref) {
  Batch batch = make_batch(9, 1);
  std::vector<float> weights(9);
  for (size_t s = 0; s < 3; ++s)
    for (size_t v = 0; v < 3; ++v) {
      const size_t i = 3 * s + v;
      batch.ids[i] = int(s), batch.targets[i] = int(v);
      weights[i] = float(-shares[s] * p_at(p, s, v) *
                         estimate(std::log(p_at(p, s, v) / p_at(ref, s, v))).slope);
    }
  return bigram_gradient(p, batch, weights);
}

TEST_CASE("by hand: values and slopes where p is twice and half the reference's") {
  const double ln2 = std::log(2.0);
  CHECK(kl_k1(ln2).value == ln2);
  CHECK(kl_k1(ln2).slope == 1);
  CHECK(std::abs(kl_k2(ln2).value - ln2 * ln2 / 2) < 1e-15);
  CHECK(kl_k2(ln2).slope == ln2);
  CHECK(std::abs(kl_k3(ln2).value - (0.5 - 1 + ln2)) < 1e-15);
  CHECK(std::abs(kl_k3(ln2).slope - 0.5) < 1e-15);
  CHECK(std::abs(kl_k3(-ln2).value - (2 - 1 - ln2)) < 1e-15);
  CHECK(std::abs(kl_k3(-ln2).slope + 1) < 1e-15);
  CHECK(std::abs(kl_k3(1e-9).value / 5e-19 - 1) < 1e-6);  // which e^-x - 1 + x would lose
}

TEST_CASE("a slope is the value's derivative") {
  for (KlEstimate (*estimate)(double) : {kl_k1, kl_k2, kl_k3})
    for (const double x : {-2.0, -0.3, 0.0, 0.5, 3.0}) {
      const double h = 1e-5;
      const double slope = (estimate(x + h).value - estimate(x - h).value) / (2 * h);
      CHECK(std::abs(estimate(x).slope - slope) < 1e-8);
    }
}

TEST_CASE("k1's and k3's values have the divergence as their mean, k2's do not") {
  const Doubles p = bigram_table(1), ref = bigram_table(2);
  const double kl = divergence(p, ref);
  REQUIRE(kl > 0.1);
  CHECK(std::abs(mean_value(kl_k1, p, ref) - kl) < 1e-14);
  CHECK(std::abs(mean_value(kl_k3, p, ref) - kl) < 1e-14);
  CHECK(std::abs(mean_value(kl_k2, p, ref) - kl) > 0.02);
}

TEST_CASE("as a loss, k1 has no mean gradient, k2 that of KL(p, ref), k3 that of KL(ref, p)") {
  Doubles p = bigram_table(1);
  const Doubles ref = bigram_table(2);
  const Tensor<2> forward = by_differences(p, [&] { return divergence(p, ref); });
  const Tensor<2> backward = by_differences(p, [&] { return divergence(ref, p); });
  // Three weights of up to 4 add to each element.
  const double bound = rounding(3, 12) + 1e-8;
  CHECK(all_close(mean_gradient(kl_k1, p, ref), zeros(3, 3), bound));
  CHECK(all_close(mean_gradient(kl_k2, p, ref), forward, bound));
  CHECK(all_close(mean_gradient(kl_k3, p, ref), backward, bound));
  CHECK_FALSE(all_close(forward, backward, 0.01));
}

}  // namespace t2t::kl_test
