// What must be true of the program that page 13 shows whole: two backward passes in doubles.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "13_training/attention/attention_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "13_training/differences.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/silence.hpp"

// The program itself; what it includes stands above.
namespace by_hand {
#define main run
#include "13_training/backward/by_hand.cpp"
#undef main
}  // namespace by_hand

namespace t2t::by_hand_test {

using std::size_t;

static by_hand::Vector doubles(const Tensor<2>& x) { return {x.begin(), x.end()}; }
static Tensor<2> floats(const by_hand::Vector& x) {
  Tensor<2> row = empty(1, x.size());
  std::ranges::transform(x, row.begin(), [](double number) { return float(number); });
  return row;
}

TEST_CASE("one row by hand: the program's gradients are its finite differences") {
  int status = 1;
  const std::string printed = printed_by([&] { status = by_hand::run(); });
  CHECK(status == 0);
  for (const char* line : {"dx[0]   0.196000   0.196000\n", "dx[1]  -0.028000  -0.028000\n",
                           "dscores[0]  -0.750000  -0.750000\n",
                           "dscores[1]   0.750000   0.750000\n", "add up to 0.000000000.\n"})
    CHECK_MESSAGE(printed.find(line) != std::string::npos, line);
}

TEST_CASE("one row by hand: a gradient that is wrong, or NaN, does not agree") {
  const by_hand::Vector x = {3, 4};
  const auto square = [](const by_hand::Vector& x) { return by_hand::dot(x, x); };
  const auto off = [&](double first) {
    double sum = 0;
    const std::string printed = printed_by([&] {
      sum = by_hand::compare("dx", {first, 8}, square, x);
    });
    return sum;
  };
  CHECK(off(6) < 1e-8);
  CHECK(off(6.001) == doctest::Approx(0.001));
  CHECK(std::isnan(off(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("one row by hand: RMSNorm's formula is norm_backward's") {
  for (const size_t C : {1, 2, 5, 64}) {
    CAPTURE(C);
    // A row's numbers are below 1, the gains below 2; with eps = 0.1, r is below 4.
    const Tensor<2> x = numbers(1, 2, 0, 1, C), dy = numbers(2, 2, 0, 1, C);
    const Tensor<1> gain = numbers(3, 2, 1, C);
    const NormGradients want = norm_backward(x, {gain, {}}, Norm::rms, 0.1f, dy);
    const by_hand::Vector got = by_hand::rms_norm_backward(doubles(x), {gain.begin(), gain.end()},
                                                           double(0.1f), doubles(dy));
    CHECK(all_close(want.x, floats(got), rounding(C, 8)));
  }
}

TEST_CASE("one row by hand: softmax's formula is softmax_backward's") {
  for (const size_t S : {1, 2, 5, 64}) {
    CAPTURE(S);
    const by_hand::Vector weights = by_hand::softmax(doubles(numbers(4, 8, 0, 1, S)));
    const Tensor<2> dweights = numbers(5, 2, 0, 1, S);
    CHECK(all_close(softmax_backward(floats(weights), dweights),
                    floats(by_hand::softmax_backward(weights, doubles(dweights))), rounding(S, 1)));
  }
}

}  // namespace t2t::by_hand_test
