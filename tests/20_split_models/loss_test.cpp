// Chapter 20: the loss and its gradient when the vocabulary is divided.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "13_training/backward/cross_entropy.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/on_ranks.hpp"
#include "20_split_models/tensor_parallel/split_loss.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::split_loss_tests {

using Floats = std::vector<float>;
constexpr double u = 0x1p-24;

/// This rank's columns.
static Tensor<2> own_part(const Communicator& ranks, const Tensor<2>& logits) {
  const Range own = range_of(logits.shape(1), ranks.size, ranks.rank);
  return copy_of(ConstMatrix(logits).cols_from(own.begin, own.size()));
}

/// The loss, and then the own gradients.
static OnRanks divided(std::size_t p, const Tensor<2>& logits, const std::vector<int>& targets,
                       float scale = 1) {
  return on_ranks(p, [&](const Communicator& ranks) {
    Tensor<2> own = own_part(ranks, logits);
    const double loss = split_cross_entropy_rows(ranks, logits.shape(1), own, targets, scale);
    Floats all = {float(loss)};
    all.insert(all.end(), own.begin(), own.end());
    return all;
  });
}

TEST_CASE("by hand: equal logits of 41 tokens cost ln 41, on any number of ranks") {
  const Tensor<2> logits = xt::zeros<float>({1, 41});
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const int target : {0, 20, 40}) {
      CAPTURE(p);
      CAPTURE(target);
      const OnRanks got = divided(p, logits, {target});
      REQUIRE(got.error == "");
      for (std::size_t r = 0; r < p; ++r) {
        const Range own = range_of(41, p, r);
        CHECK(std::abs(got.results[r][0] - std::log(41.)) <= 8 * u);
        for (std::size_t v = own.begin; v < own.end; ++v) {
          const double want = 1 / 41. - (int(v) == target ? 1 : 0);
          CHECK(std::abs(got.results[r][1 + v - own.begin] - want) <= 4 * u);
        }
      }
    }
}

TEST_CASE("by hand: a logit of 100 on one rank and −100 on the other costs 0 or 200") {
  const Tensor<2> logits{{100, 100, -100, -100}};
  for (const auto& [target, want] : {std::pair{1, std::log(2.)}, {2, 200 + std::log(2.)}}) {
    const OnRanks got = divided(2, logits, {target});
    REQUIRE(got.error == "");
    for (const Floats& of_rank : got.results) CHECK(std::abs(of_rank[0] - want) <= 2 * u * 200);
    CHECK(std::abs(got.results[0][1] - 0.5) <= u);
    CHECK(got.results[1][2] == 0);  // e^−200
  }
}

TEST_CASE("losses and gradients are chapter 13's within the bound, and its bits on one rank") {
  constexpr std::size_t T = 7, V = 61;
  const Tensor<2> logits = numbers(5, 6, 0, T, V);
  const std::vector<int> targets = {0, 60, not_learned, 31, 13, 14, 59};
  const float scale = 1 / 6.f;
  Tensor<2> want = logits;
  std::vector<double> losses(T);
  const double loss = cross_entropy_rows(want, targets, scale, losses);
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks got = divided(p, logits, targets, scale);
    REQUIRE(got.error == "");
    double worst = 0;
    for (std::size_t r = 0; r < p; ++r) {
      const Range own = range_of(V, p, r);
      CHECK(got.results[r][0] == got.results[0][0]);
      for (std::size_t t = 0; t < T; ++t)
        for (std::size_t v = own.begin; v < own.end; ++v) {
          const float one = got.results[r][1 + t * own.size() + v - own.begin];
          const double off = std::abs(double(one) - double(want(t, v)));
          // Both sums of V exponentials are within V·u of the exact one; each e^x within 2 units.
          worst = std::max(worst, std::isnan(off) ? 99 : off / (scale * 2 * (V + 6) * u));
          if (p == 1) CHECK(one == want(t, v));
        }
    }
    CHECK(worst <= 1);
    CHECK(std::abs(got.results[0][0] - loss) <= T * 2 * (V + 6) * u + u * loss);
  }
}

TEST_CASE("what it sends is the formula's, and targets outside the vocabulary are refused") {
  const Tensor<2> logits = numbers(5, 6, 0, 3, 41);
  const std::vector<int> targets = {1, 2, 3};
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      Tensor<2> own = own_part(ranks, logits);
      const Sent before = sent();
      split_cross_entropy_rows(ranks, 41, own, targets, 1);
      const Sent now = sent() - before;
      return {float(now.messages), float(now.bytes)};
    });
    REQUIRE(got.error == "");
    for (std::size_t r = 0; r < p; ++r) {
      const Sent want = split_cross_entropy_cost(3, p, r);
      CHECK(got.results[r] == Floats{float(want.messages), float(want.bytes)});
      CHECK(want == Sent{2 * (p - 1), (p - 1) * 3 * 3 * sizeof(float)});
    }
  }
  Tensor<2> own = own_part(all_ranks(), logits);
  const std::vector<int> outside = {1, 41, 3};
  REFUSES(split_cross_entropy_rows(all_ranks(), 41, own, outside, 1),
          "targets: token 1 is 41, wanted one in [0, 41)");
}

}  // namespace t2t::split_loss_tests
