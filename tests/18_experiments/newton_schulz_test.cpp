// What must be true of Newton–Schulz iteration: which singular values it makes, that it keeps the
// singular vectors, and that a matrix's factor does not matter.
#include "18_experiments/muon/newton_schulz.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "18_experiments/singular_values.hpp"
#include "linalg.hpp"
#include "support/all_close.hpp"
#include "support/little_memory.hpp"
#include "support/refuses.hpp"

namespace t2t::newton_schulz_test {

using std::size_t;

TEST_CASE("by hand: ((0, -3), (4, 0)) has the singular values 0.6 and 0.8 of its norm, 5") {
  // 0.6: 3.4445·0.6 − 4.775·0.216 + 2.0315·0.07776 = 1.193269. 0.8 likewise: 0.976482.
  const Tensor<2> g = {{0, -3}, {4, 0}};
  const Tensor<2> once = {{0, -1.193269f}, {0.976482f, 0}}, all = {{0, -0.722876f}, {1.119204f, 0}};
  // A step rounds about 8 numbers of at most 18, and the other steps multiply that by at most 10.
  const double bound = 5 * 8 * 18 * 10 * 0x1p-24;
  CHECK(all_close(newton_schulz(g, {.steps = 1}), once, bound));
  CHECK(all_close(newton_schulz(g), all, bound));
  const Tensor<2> from = {{0, -0.6f}, {0.8f, 0}};
  CHECK(all_close(newton_schulz_step({}, from), once, bound));
}

TEST_CASE("by hand: a step maps 1 to a + b + c = 0.701, and small values to a times as much") {
  CHECK(singular_value_after({}, 1) == doctest::Approx(0.701).epsilon(1e-6));
  CHECK(singular_value_after({}, 1e-6) == doctest::Approx(3.4445e-6).epsilon(1e-6));
  CHECK(singular_value_after({.a = 2, .b = 3, .c = 5}, 2) == 2 * 2 + 3 * 8 + 5 * 32);
  CHECK(singular_value_after({}, -0.6) == -singular_value_after({}, 0.6));
}

TEST_CASE("five steps take values from 0.01 on into a band around 1, and none far above it") {
  double least = 2, most = 0, most_of_small = 0;
  for (int i = 1; i <= 20'000; ++i) {
    const double first = i * 5e-5, s = after_all_steps(first);
    if (first < 0.01) most_of_small = std::max(most_of_small, s);
    if (first >= 0.01) least = std::min(least, s), most = std::max(most, s);
  }
  CHECK(least > 0.68);
  CHECK(most < 1.135);
  CHECK(most_of_small < 1.203);
}

/// min(m, n) values, from 1 down to 0.4, in no order.
static std::vector<double> some_values(size_t m, size_t n) {
  const size_t count = std::min(m, n);
  std::vector<double> s(count);
  for (size_t i = 0; i < count; ++i) s[i] = 1 - 0.6 * double(i * 7 % count) / double(count);
  return s;
}
static double norm_of(const std::vector<double>& s) {
  double squares = 0;
  for (const double value : s) squares += value * value;
  return std::sqrt(squares);
}
static double bound_for(const std::vector<double>& s) {
  const double norm = norm_of(s);
  const auto [least, most] = std::ranges::minmax(s);
  return newton_schulz_bound(s.size(), most_amplified(least / norm, most / norm));
}

TEST_CASE(
    "a matrix keeps its singular vectors, and its values are mapped one by one, at odd sizes") {
  for (const std::array<size_t, 2>& shape : std::vector<std::array<size_t, 2>>{
           {1, 4}, {4, 1}, {3, 5}, {5, 3}, {7, 7}, {24, 41}, {41, 24}}) {
    const size_t m = shape[0], n = shape[1];
    CAPTURE(m);
    CAPTURE(n);
    const std::vector<double> s = some_values(m, n);
    std::vector<double> mapped;
    for (const double value : s) mapped.push_back(after_all_steps(value / norm_of(s)));
    CHECK(all_close(newton_schulz(of_singular_values(s, m, n)), of_singular_values(mapped, m, n),
                    bound_for(s)));
  }
}

TEST_CASE("a tall matrix gives the transpose of what its transpose gives, bit by bit") {
  const Tensor<2> g = numbers(3, 2, 0, 9, 4), wide = xt::transpose(g);
  CHECK(all_close(newton_schulz(g), Tensor<2>(xt::transpose(newton_schulz(wide))), 0));
}

TEST_CASE("a matrix's factor does not matter, however small or large") {
  const std::vector<double> s = some_values(6, 9);
  const Tensor<2> g = of_singular_values(s, 6, 9), want = newton_schulz(g);
  for (const float factor : {0x1p-70f, 0x1p-20f, 0x1p60f}) {
    CAPTURE(factor);
    CHECK(all_close(newton_schulz(factor * g), want, 0));  // a power of two rounds nothing
  }
  CHECK(all_close(newton_schulz(0.37f * g), want, bound_for(s)));
}

TEST_CASE("a rotated matrix gives the rotated result") {
  const std::vector<double> s = some_values(6, 9);
  const Tensor<2> g = of_singular_values(s, 6, 9);
  const Doubles rows = orthonormal_rows(5, 6, 6);
  Tensor<2> rotation = empty(6, 6);
  std::ranges::copy(rows.numbers, rotation.begin());
  CHECK(all_close(newton_schulz(matmul(rotation, g)), matmul(rotation, newton_schulz(g)),
                  2 * bound_for(s)));
}

TEST_CASE("zeros stay zeros, and what is not finite is refused") {
  const Tensor<2> none = zeros(3, 2);
  CHECK(all_close(newton_schulz(none), none, 0));
  Tensor<2> g = numbers(4, 2, 0, 3, 2);
  g(1, 1) = std::numeric_limits<float>::infinity();
  REFUSES(newton_schulz(g),
          "g, the root of the sum of its squares: wanted a finite number, got inf");
  g(1, 1) = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(newton_schulz(g), std::invalid_argument);
  REFUSES(newton_schulz(empty(0, 2)), "g, its elements: wanted at least 1, got 0");
}

TEST_CASE("a tall matrix never needs a product of its long side with itself") {
  const Tensor<2> g = numbers(4, 2, 0, 3000, 2);
  const Tensor<2> want = newton_schulz(g);
  const LittleMemory little(std::size_t(1) << 20);  // 3000·3000 floats are 36 MB
  CHECK(all_close(newton_schulz(g), want, 0));
}

}  // namespace t2t::newton_schulz_test
