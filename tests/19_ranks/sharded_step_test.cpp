// Chapter 19: the step of a shard, and the norm over all shards.
#include "19_ranks/sharded/sharded_step.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "19_ranks/on_ranks.hpp"
#include "19_ranks/sharded/shards.hpp"

namespace t2t::sharded_step_tests {

using Floats = std::vector<float>;

static ListedTensor listed(std::string_view name, Row numbers) {
  return {{name, numbers.size(), 1, Role::matrix}, numbers};
}

/// The norm of n elements x(i) that are cut among p ranks, as two floats; or what was thrown.
static OnRanks norms(std::size_t p, std::size_t n, float (*x)(std::size_t), double loss = 1) {
  return on_ranks(p, [=](const Communicator& ranks) -> Floats {
    Floats all(n);
    for (std::size_t i = 0; i < n; ++i) all[i] = x(i);
    const std::size_t half = n / 3;
    const std::vector<ListedTensor> tensors = {listed("first", Row(all).first(half)),
                                               listed("second", Row(all).subspan(half))};
    const double norm = norm_of_shards(ranks, chunks_of(ranks, tensors), 7, loss);
    return {float(norm), float(norm - double(float(norm)))};
  });
}

TEST_CASE("by hand: two ranks with 3 and 4 have the norm 5") {
  const auto x = [](std::size_t i) { return i == 0 ? 0.f : i == 1 ? 3.f : 4.f; };
  CHECK(first_wrong(norms(2, 3, x), {5, 0}) == "");
  CHECK(first_wrong(norms(3, 7, [](std::size_t) { return 0.f; }), {0, 0}) == "");
}

TEST_CASE("by hand: the gradient (3, 0, 4) on two ranks is clipped to (0.6, 0, 0.8)") {
  const OnRanks got = on_ranks(2, [](const Communicator& ranks) -> Floats {
    Floats w(3), g = {3, 0, 4};
    const std::vector<ListedTensor> weights = chunks_of(ranks, {listed("w", w)}),
                                    gradients = chunks_of(ranks, {listed("w", g)});
    Optimizer optimizer({.clip = 0}, weights, gradients);
    const StepReport report = step_of_shards(ranks, optimizer, gradients, 1, 2);
    Floats found = {float(report.gradient_norm), float(report.n), float(report.loss)};
    found.insert(found.end(), gradients[0].numbers.begin(), gradients[0].numbers.end());
    return found;
  });
  REQUIRE(got.error == "");
  CHECK(got.results[0] == Floats{5, 1, 2, 0.2f * 3});
  CHECK(got.results[1] == Floats{5, 1, 2, 0, 0.2f * 4});
}

/// Magnitudes from 2^-12 to 2^11, and one of 2^e.
template <int e>
static float spread(std::size_t i) {
  const float sign = i % 2 == 0 ? 1.f : -1.f, fraction = 1 + float(i * i % 8191) * 0x1p-13f;
  return i == 12345 ? std::ldexp(1.f, e) : sign * std::ldexp(fraction, int(i % 23) - 12);
}

TEST_CASE("the norm has the same bits on any number of ranks, and is within its bound") {
  constexpr std::size_t n = 20'011;
  for (float (*x)(std::size_t) : {spread<3>, spread<40>, spread<-140>}) {
    const OnRanks alone = norms(1, n, x);
    REQUIRE(alone.error == "");
    for (std::size_t p = 2; p <= most_ranks; ++p)
      CHECK(first_wrong(norms(p, n, x), alone.results[0]) == "");
    long double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (long double)(x(i)) * x(i);
    const double norm = double(alone.results[0][0]) + double(alone.results[0][1]);
    const double want = double(std::sqrt(sum));
    // What two floats hold is within 2^-48, and a root and its sum are within 2^-51.
    CHECK(std::abs(norm - want) <= (double(n) * 0x1p-59 + 0x1p-47) * want);
  }
}

TEST_CASE("the norm of very small and very large gradients is neither 0 nor too large") {
  const auto small = [](std::size_t) { return 1e-38f; };
  const auto large = [](std::size_t i) { return i == 0 ? 9e18f : 0.f; };
  CHECK(first_wrong(norms(2, 4, [](std::size_t) { return 0x1p-140f; }), {0x1p-139f, 0}) == "");
  CHECK(std::abs(norms(2, 100, small).results[0][0] - 1e-37f) <= 1e-43f);
  CHECK(norms(2, 100, large).error == "");
}

/// A NaN that one rank alone holds, whatever their number.
static float nan_near_the_end(std::size_t i) {
  return i == 97 ? std::numeric_limits<float>::quiet_NaN() : 1.f;
}

TEST_CASE("what is not finite on one rank is an error on all, with the same words") {
  const auto infinite = [](std::size_t i) { return i == 1 ? -INFINITY : 1.f; };
  const auto too_large = [](std::size_t) { return 1.1e18f; };
  const auto one = [](std::size_t) { return 1.f; };
  const auto message = [](std::size_t p, float (*x)(std::size_t), double loss) {
    const OnRanks got = on_ranks(p, [=](const Communicator& ranks) -> Floats {
      Floats all(100);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = x(i);
      const std::vector<ListedTensor> tensors = {listed("first", Row(all).first(33)),
                                                 listed("second", Row(all).subspan(33))};
      try {
        norm_of_shards(ranks, chunks_of(ranks, tensors), 7, loss);
      } catch (const std::runtime_error& error) {
        const std::string text = error.what();
        return {text.begin(), text.end()};
      }
      return {};
    });
    for (const Floats& result : got.results)
      if (result != got.results[0]) return std::string("other words on another rank");
    return got.error.empty() ? std::string(got.results[0].begin(), got.results[0].end())
                             : got.error;
  };
  const std::string end = " is not finite (loss 2); wanted a lower rate or more warm-up";
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    CHECK(message(p, nan_near_the_end, 2) == "step 7: the gradient of second" + end);
    CHECK(message(p, infinite, 2) == "step 7: the gradient of first" + end);
    CHECK(message(p, too_large, 2) == "step 7: the gradient of all tensors together" + end);
    CHECK(message(p, one, 2) == "");
    CHECK(message(p, one, std::nan("")).starts_with("step 7: the gradient of all tensors"));
  }
}

TEST_CASE("AdamW on a part of a row gives the bits of the whole row, wherever it is cut") {
  constexpr std::size_t n = 75;
  const AdamWStep step{{}, 1e-2f, 3, 0.7f};
  std::vector<double> scratch(1);
  const auto moved = [&](std::size_t begin, std::size_t end) {
    Floats w = fractions(1, n), mean = fractions(3, n), square = fractions(4, n);
    const Floats g = fractions(2, n);
    for (float& x : square) x = x * x;
    const auto cut = [&](Row row) { return row.subspan(begin, end - begin); };
    adamw_step(step, 0.1f, cut(w), ConstRow(g).subspan(begin, end - begin), cut(mean), cut(square),
               scratch);
    w.insert(w.end(), mean.begin(), mean.end());
    w.insert(w.end(), square.begin(), square.end());
    return w;
  };
  const Floats whole = moved(0, n);
  std::size_t wrong = 0;
  for (std::size_t begin = 0; begin <= n; ++begin)
    for (std::size_t end = begin; end <= n; ++end) {
      const Floats part = moved(begin, end);
      for (std::size_t i = begin; i < end; ++i)
        for (std::size_t k = 0; k < 3; ++k) wrong += part[k * n + i] != whole[k * n + i];
    }
  CHECK(wrong == 0);
}

}  // namespace t2t::sharded_step_tests
