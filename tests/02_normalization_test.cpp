// What must be true of LayerNorm and RMSNorm, as formula and as row kernel.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "02_normalization/fast/layer_norm_rows.hpp"
#include "02_normalization/fast/rms_norm_rows.hpp"
#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "files/npy.hpp"
#include "random.hpp"
#include "support/additions.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/refuses.hpp"

using namespace t2t;

static Tensor<2> some_rows(std::size_t T, std::size_t C) {
  return Random(T * 10000 + C).normal<2>({T, C}, 2, 0.5f);
}
static Tensor<1> some_channels(std::size_t C, std::uint64_t seed) {
  return Random(seed).uniform<1>({C}, 0.5f, 1.5f);
}
static Tensor<1> full(std::size_t C, float value) {
  Tensor<1> x = empty(C);
  x.fill(value);
  return x;
}

static Tensor<2> full_rows(std::size_t T, std::size_t C, float value) {
  Tensor<2> x = empty(T, C);
  x.fill(value);
  return x;
}

// The row kernels write over sevens, so that a number which they do not write is found.
static Tensor<2> rms_by_rows(const Tensor<2>& x, const Tensor<1>& gain, float eps) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  y.fill(7);
  rms_norm_rows(x, row(gain), eps, y);
  return y;
}
static Tensor<2> layer_by_rows(const Tensor<2>& x, const Tensor<1>& gain, const Tensor<1>& bias,
                               float eps) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  y.fill(7);
  layer_norm_rows(x, row(gain), row(bias), eps, y);
  return y;
}

/// RMSNorm of one row as a plain loop.
static void plain_rms_norm_row(ConstRow x, ConstRow gain, float eps, Row y) {
  float sum = 0;
  for (const float value : x) sum += value * value;
  const float inverse_rms = 1 / std::sqrt(sum / float(x.size()) + eps);
  for (std::size_t c = 0; c < x.size(); ++c) y[c] = gain[c] * (x[c] * inverse_rms);
}

// u = 2^-24 is the largest relative error of one float operation. The relative error of a sum of C
// terms is at most C·u and typically sqrt(C)·u, because roundings have either sign. The root halves
// it, and about six operations follow. Outputs are at most 6 here: 4 deviations times a gain
// of 1.5.
static double bound(std::size_t C) { return 6 * (std::sqrt(double(C)) / 2 + 6) * 0x1p-24; }

// The error of the mean, and of each difference from it, is sqrt(C)·u/2 + u of the row's largest
// number, which is `far` deviations from 0. The division by the deviation keeps this ratio.
static double bound(std::size_t C, double far) {
  return bound(C) + 1.5 * far * (std::sqrt(double(C)) / 2 + 2) * 0x1p-24;
}

TEST_CASE("rms_norm: by hand, the row (3, 4) has root mean square sqrt(12.5)") {
  const Tensor<2> x = {{3, 4}}, want = {{0.84852814f, 1.13137085f}};
  CHECK(all_close(rms_norm(x, full(2, 1), 0), want, bound(2)));
  CHECK(all_close(rms_by_rows(x, full(2, 1), 0), want, bound(2)));
}

TEST_CASE("layer_norm: by hand, the row (1, 3) goes to (-1, 1), and from there to gain and bias") {
  const Tensor<2> x = {{1, 3}}, want = {{-1, 1}}, want_dressed = {{8, 12}};
  CHECK(all_close(layer_norm(x, full(2, 1), full(2, 0), 0), want, bound(2)));
  CHECK(all_close(layer_by_rows(x, full(2, 1), full(2, 0), 0), want, bound(2)));
  CHECK(all_close(layer_norm(x, full(2, 2), full(2, 10), 0), want_dressed, 4 * bound(2)));
  CHECK(all_close(layer_by_rows(x, full(2, 2), full(2, 10), 0), want_dressed, 4 * bound(2)));
}

TEST_CASE("layer_norm: by hand, with eps 0, the row (1, 2, 1), which begins and ends alike") {
  const Tensor<2> x = {{1, 2, 1}};  // less 4/3, over a deviation of √(2/9)
  const Tensor<2> want = {{-0.70710678f, 1.41421356f, -0.70710678f}};
  CHECK(all_close(layer_norm(x, full(3, 1), full(3, 0), 0), want, bound(3)));
  CHECK(all_close(layer_by_rows(x, full(3, 1), full(3, 0), 0), want, bound(3)));
}

TEST_CASE("by hand: the row (3, 5) with eps 8 tells C from C - 1, and where eps and gain belong") {
  const Tensor<2> x = {{3, 5}};
  const Tensor<1> gain = {2, 3}, bias = {10, 20};
  const Tensor<2> rms = {{1.2f, 3}};              // gain · x / sqrt(17 + 8)
  const Tensor<2> layer = {{10 - 2.0f / 3, 21}};  // gain · (x - 4) / sqrt(1 + 8) + bias
  CHECK(all_close(rms_norm(x, gain, 8), rms, bound(2)));
  CHECK(all_close(rms_by_rows(x, gain, 8), rms, bound(2)));
  CHECK(all_close(layer_norm(x, gain, bias, 8), layer, 4 * bound(2)));
  CHECK(all_close(layer_by_rows(x, gain, bias, 8), layer, 4 * bound(2)));
}

TEST_CASE("formula and row kernel equal float64, at odd sizes, for tiny rows and far from zero") {
  struct Case {
    std::string name;
    double far;  // largest number over deviation: see bound
  };
  for (const Case& c : {Case{"odd", 4}, Case{"wide", 4}, Case{"tiny", 4}, Case{"far", 104}}) {
    CAPTURE(c.name);
    const std::string path = T2T_FIXTURES "/" + c.name;
    const Tensor<2> x = load_npy<2>(path + "_x.npy");
    const Tensor<1> gain = load_npy<1>(path + "_gain.npy"), bias = load_npy<1>(path + "_bias.npy");
    const Tensor<2> rms = load_npy<2>(path + "_rms.npy"), layer = load_npy<2>(path + "_layer.npy");
    const std::size_t C = x.shape(1);
    CHECK(all_close(rms_norm(x, gain, 1e-5f), rms, bound(C)));
    CHECK(all_close(rms_by_rows(x, gain, 1e-5f), rms, bound(C)));
    CHECK(all_close(layer_norm(x, gain, bias, 1e-5f), layer, bound(C, c.far)));
    CHECK(all_close(layer_by_rows(x, gain, bias, 1e-5f), layer, bound(C, c.far)));
  }
}

TEST_CASE("the row kernel equals the formula, also for T and C that are no round numbers") {
  for (const std::size_t T : {1, 4, 7})
    for (const std::size_t C : {1, 2, 31, 96, 577, 2048, 2051}) {
      CAPTURE(T);
      CAPTURE(C);
      const Tensor<2> x = some_rows(T, C);
      const Tensor<1> gain = some_channels(C, 1), bias = some_channels(C, 2);
      // Twice the bound, since both sides have the error.
      CHECK(all_close(rms_by_rows(x, gain, 1e-5f), rms_norm(x, gain, 1e-5f), 2 * bound(C)));
      CHECK(all_close(layer_by_rows(x, gain, bias, 1e-5f), layer_norm(x, gain, bias, 1e-5f),
                      2 * bound(C, 4)));
    }
}

TEST_CASE("layer_norm_rows: 64 numbers far from the others, at the front or at the end of a row") {
  constexpr std::size_t C = 1 << 20;
  for (const std::size_t first : {std::size_t(0), C - 64}) {
    CAPTURE(first);
    Tensor<2> x = Random(6).normal<2>({1, C});
    for (std::size_t c = first; c < first + 64; ++c) x(0, c) += 30000;
    double sum = 0, squares = 0;
    for (const float v : x) sum += v;
    const double mean = sum / C;
    for (const float v : x) squares += (v - mean) * (v - mean);
    Tensor<2> want = empty(1, C);
    for (std::size_t c = 0; c < C; ++c)
      want(0, c) = float((x(0, c) - mean) / std::sqrt(squares / C));
    // These 64 are 128 deviations from the mean. The relative error of the deviation is half that
    // of the sum of squares, and about six operations follow. The mean of the differences is far
    // less than a deviation, and so is its error.
    const double most = 128 * (additions(C) / 2 + 6) * 0x1p-24;
    CHECK(all_close(layer_by_rows(x, full(C, 1), full(C, 0), 0), want, most));
  }
}

TEST_CASE("the width and the rows of a real model, which the threads share, equal float64") {
  constexpr std::size_t T = 200, C = 4096;
  Tensor<2> x = some_rows(T, C);
  for (std::size_t t = 0; t < T; t += 2)  // a row that is mixed with its neighbour is far off
    for (float& number : row(x, t)) number *= 0.25f;
  const Tensor<1> gain = some_channels(C, 1), bias = some_channels(C, 2);
  Tensor<2> rms = empty(T, C), layer = empty(T, C);
  for (std::size_t t = 0; t < T; ++t) {
    double sum = 0, squares = 0;
    for (const float v : row(x, t)) sum += v, squares += double(v) * v;
    const double mean = sum / C, variance = squares / C - mean * mean;
    for (std::size_t c = 0; c < C; ++c) {
      rms(t, c) = float(gain(c) * x(t, c) / std::sqrt(squares / C + 1e-5f));
      layer(t, c) = float(gain(c) * (x(t, c) - mean) / std::sqrt(variance + 1e-5f) + bias(c));
    }
  }
  CHECK(all_close(rms_norm(x, gain, 1e-5f), rms, bound(C)));
  CHECK(all_close(rms_by_rows(x, gain, 1e-5f), rms, bound(C)));
  CHECK(all_close(layer_norm(x, gain, bias, 1e-5f), layer, bound(C, 4)));
  CHECK(all_close(layer_by_rows(x, gain, bias, 1e-5f), layer, bound(C, 4)));
  // Threads that write to one place would not always give the same bits.
  const Tensor<2> first_rms = rms_by_rows(x, gain, 1e-5f);
  const Tensor<2> first_layer = layer_by_rows(x, gain, bias, 1e-5f);
  for (int again = 0; again < 10; ++again) {
    CHECK(all_close(rms_by_rows(x, gain, 1e-5f), first_rms, 0));
    CHECK(all_close(layer_by_rows(x, gain, bias, 1e-5f), first_layer, 0));
  }
}

TEST_CASE("the row kernel equals a plain loop over the channels") {
  for (const std::size_t C : {1, 31, 96, 577}) {
    CAPTURE(C);
    const Tensor<2> x = some_rows(1, C);
    const Tensor<1> gain = some_channels(C, 1);
    Tensor<2> want = empty(1, C);
    plain_rms_norm_row(row(x, 0), row(gain), 1e-5f, row(want, 0));
    CHECK(all_close(rms_by_rows(x, gain, 1e-5f), want, 2 * bound(C)));
  }
}

TEST_CASE("a prompt of 9,001 tokens: every row is normed") {
  const std::size_t T = 9001, C = 3;
  const Tensor<2> x = some_rows(T, C);
  const Tensor<1> gain = some_channels(C, 1), bias = some_channels(C, 2);
  CHECK(all_close(rms_by_rows(x, gain, 1e-5f), rms_norm(x, gain, 1e-5f), 2 * bound(C)));
  CHECK(all_close(layer_by_rows(x, gain, bias, 1e-5f), layer_norm(x, gain, bias, 1e-5f),
                  2 * bound(C, 4)));
  const std::size_t last = T - 1;
  const Tensor<2> alone = copy_of(ConstMatrix(x).rows_from(last, 1));
  Tensor<2> want = empty(1, C);
  plain_rms_norm_row(row(alone, 0), row(gain), 1e-5f, row(want, 0));
  CHECK(all_close(copy_of(ConstMatrix(rms_norm(x, gain, 1e-5f)).rows_from(last, 1)), want,
                  2 * bound(C)));
}

TEST_CASE("y may be x itself, and a view of part of each row") {
  for (const std::size_t C : {37, 2051}) {
    CAPTURE(C);
    const Tensor<1> gain = some_channels(C, 1), bias = some_channels(C, 2);
    Tensor<2> wide = some_rows(5, C + 20), part = empty(5, C);
    const Matrix view = Matrix(wide).cols_from(7, C);
    for (std::size_t t = 0; t < 5; ++t) std::ranges::copy(view.row(t), part.data() + t * C);
    const Tensor<2> rms = rms_by_rows(part, gain, 1e-5f);
    const Tensor<2> layer_of_rms = layer_by_rows(rms, gain, bias, 1e-5f);
    const float before = wide(2, 6), after = wide(2, C + 7);

    rms_norm_rows(view, row(gain), 1e-5f, view);
    layer_norm_rows(view, row(gain), row(bias), 1e-5f, view);
    for (std::size_t t = 0; t < 5; ++t) std::ranges::copy(view.row(t), part.data() + t * C);
    CHECK(all_close(part, layer_of_rms, 0));
    CHECK(wide(2, 6) == before);
    CHECK(wide(2, C + 7) == after);
  }
}

TEST_CASE("x and y may be parts of matrices of different widths") {
  const std::size_t C = 37;
  const Tensor<1> gain = some_channels(C, 1), bias = some_channels(C, 2);
  Tensor<2> wide = some_rows(9, C + 20), wider = some_rows(9, C + 31);
  const Matrix x = Matrix(wide).cols_from(7, C), y = Matrix(wider).cols_from(3, C);
  const Tensor<2> copied = copy_of(x);
  rms_norm_rows(x, row(gain), 1e-5f, y);
  CHECK(all_close(copy_of(y), rms_by_rows(copied, gain, 1e-5f), 0));
  layer_norm_rows(x, row(gain), row(bias), 1e-5f, y);
  CHECK(all_close(copy_of(y), layer_by_rows(copied, gain, bias, 1e-5f), 0));
}

TEST_CASE("the row kernels allocate nothing") {
  const Tensor<2> x = some_rows(5, 33);
  const Tensor<1> gain = some_channels(33, 1), bias = some_channels(33, 2);
  Tensor<2> y = x;
  CHECK(allocates_nothing(3, [&] { rms_norm_rows(x, row(gain), 1e-5f, y); }));
  CHECK(allocates_nothing(3, [&] { layer_norm_rows(x, row(gain), row(bias), 1e-5f, y); }));
}

TEST_CASE("rms_norm ignores the scale of a row, not a shift; layer_norm ignores both") {
  const Tensor<1> one = full(64, 1), zero = full(64, 0);
  const Tensor<2> x = some_rows(4, 64), scaled = 8 * x, shifted = x + 3;
  const Tensor<2> rms = rms_norm(x, one, 0), layer = layer_norm(x, one, zero, 0);
  CHECK(all_close(rms_norm(scaled, one, 0), rms, 2 * bound(64)));
  CHECK_FALSE(all_close(rms_norm(shifted, one, 0), rms, 0.1));
  CHECK(all_close(layer_norm(scaled, one, zero, 0), layer, 2 * bound(64, 4)));
  CHECK(all_close(layer_norm(shifted, one, zero, 0), layer, 2 * bound(64, 6)));
}

TEST_CASE("a token's result does not depend on the other tokens") {
  Tensor<2> x = some_rows(6, 48);
  const Tensor<1> gain = some_channels(48, 1), bias = some_channels(48, 2);
  const Tensor<2> rms = rms_norm(x, gain), layer = layer_norm(x, gain, bias);
  for (std::size_t c = 0; c < 48; ++c) x(5, c) += 100;
  const Tensor<2> rms_after = rms_norm(x, gain), layer_after = layer_norm(x, gain, bias);
  for (std::size_t c = 0; c < 48; ++c) {
    CHECK(rms_after(4, c) == rms(4, c));
    CHECK(layer_after(4, c) == layer(4, c));
  }
}

TEST_CASE("with eps above 0, rows of zeros and of equal numbers have finite results") {
  const Tensor<2> zeros = {{0, 0, 0}}, sevens = {{7, 7, 7}}, bias_row = {{2, 2, 2}};
  const Tensor<2> ones = {{1, 1, 1}};
  CHECK(all_close(rms_norm(zeros, full(3, 1)), zeros, 0));
  CHECK(all_close(rms_by_rows(zeros, full(3, 1), 1e-5f), zeros, 0));
  const double short_of_1 = 1e-5 / 49 / 2;  // by eps, added to a mean square of 49
  CHECK(all_close(rms_norm(sevens, full(3, 1)), ones, short_of_1 + bound(3)));
  CHECK(all_close(rms_by_rows(sevens, full(3, 1), 1e-5f), ones, short_of_1 + bound(3)));
  CHECK(all_close(layer_norm(sevens, full(3, 1), full(3, 2)), bias_row, 0));
  CHECK(all_close(layer_by_rows(sevens, full(3, 1), full(3, 2), 1e-5f), bias_row, 0));
}

TEST_CASE("layer_norm keeps its digits when the mean is large beside the deviation") {
  const Tensor<2> x = {{65535, 65537, 65535, 65537}}, want = {{-1, 1, -1, 1}};
  CHECK(all_close(layer_norm(x, full(4, 1), full(4, 0), 0), want, bound(4)));
  CHECK(all_close(layer_by_rows(x, full(4, 1), full(4, 0), 0), want, bound(4)));
}

TEST_CASE("layer_norm keeps its digits when the first 64 numbers are far from the others") {
  Tensor<2> x = empty(1, 1024), want = empty(1, 1024);
  for (std::size_t c = 0; c < 1024; ++c) x(0, c) = c < 64 ? 30 : c % 2 ? 1 : -1;
  // Mean 1.875, mean square 57.1875, so variance 53.671875 by exact arithmetic.
  for (std::size_t c = 0; c < 1024; ++c)
    want(0, c) = float((x(0, c) - 1.875) / std::sqrt(53.671875));
  CHECK(all_close(layer_by_rows(x, full(1024, 1), full(1024, 0), 0), want, bound(1024)));
}

TEST_CASE("rms_norm: a number whose square is infinite as a float makes its row 0") {
  const Tensor<2> x = {{2e19f, 1}}, zeros = {{0, 0}};
  CHECK(all_close(rms_norm(x, full(2, 1)), zeros, 0));
  CHECK(all_close(rms_by_rows(x, full(2, 1), 1e-5f), zeros, 0));
}

TEST_CASE("NaN stays in its row") {
  Tensor<2> x = some_rows(2, 37);
  x(0, 36) = std::numeric_limits<float>::quiet_NaN();
  for (const float eps : {1e-5f, 0.0f}) {
    Tensor<2> rms, layer;
    REQUIRE_NOTHROW(rms = rms_by_rows(x, full(37, 1), eps));
    REQUIRE_NOTHROW(layer = layer_by_rows(x, full(37, 1), full(37, 0), eps));
    CAPTURE(rms(0, 0));
    CAPTURE(layer(0, 0));
    CAPTURE(rms(1, 0));
    CAPTURE(layer(1, 0));
    CHECK(std::isnan(rms(0, 0)));
    CHECK(std::isnan(layer(0, 0)));
    CHECK(std::isfinite(rms(1, 0)));
    CHECK(std::isfinite(layer(1, 0)));
  }
}

TEST_CASE("gain, bias and y of another shape are refused; the message has both shapes") {
  const Tensor<2> x = some_rows(2, 8);
  const Tensor<1> seven = full(7, 1), eight = full(8, 1);
  Tensor<2> y = empty(3, 8), fitting = full_rows(2, 8, 5);
  const Tensor<2> fives = fitting;
  REFUSES(rms_norm(x, seven), "gain: wanted shape [8], got [7]");
  REFUSES(layer_norm(x, seven, eight), "gain: wanted shape [8], got [7]");
  REFUSES(layer_norm(x, eight, seven), "bias: wanted shape [8], got [7]");
  REFUSES(rms_norm_rows(x, row(seven), 1e-5f, fitting), "gain: wanted shape [8], got [7]");
  REFUSES(rms_norm_rows(x, row(eight), 1e-5f, y), "y: wanted shape [2, 8], got [3, 8]");
  REFUSES(layer_norm_rows(x, row(seven), row(eight), 1e-5f, fitting),
          "gain: wanted shape [8], got [7]");
  REFUSES(layer_norm_rows(x, row(eight), row(seven), 1e-5f, fitting),
          "bias: wanted shape [8], got [7]");
  REFUSES(layer_norm_rows(x, row(eight), row(eight), 1e-5f, y),
          "y: wanted shape [2, 8], got [3, 8]");
  CHECK(all_close(fitting, fives, 0));  // a refused call writes nothing
}

TEST_CASE("rows without channels are refused") {
  const Tensor<2> x = empty(2, 0);
  const Tensor<1> none = full(0, 1);
  REFUSES(rms_norm(x, none), "x: wanted at least 1 channel, got 0");
  REFUSES(rms_by_rows(x, none, 1e-5f), "x: wanted at least 1 channel, got 0");
  REFUSES(layer_norm(x, none, none), "x: wanted at least 1 channel, got 0");
  REFUSES(layer_by_rows(x, none, none, 1e-5f), "x: wanted at least 1 channel, got 0");
}

TEST_CASE("an eps of 0 is refused, by the number of the row, when it would give 0/0") {
  Tensor<2> x = some_rows(4, 8);
  const Tensor<1> one = full(8, 1);
  for (std::size_t c = 0; c < 8; ++c) x(3, c) = 0;
  REFUSES(rms_norm(x, one, 0), "eps: wanted more than 0 (row 3 has a mean square of 0), got 0");
  REFUSES(rms_by_rows(x, one, 0), "eps: wanted more than 0 (row 3 has a mean square of 0), got 0");
  for (std::size_t c = 0; c < 8; ++c) x(3, c) = 0.1f;
  REFUSES(layer_norm(x, one, one, 0), "eps: wanted more than 0 (row 3 has a variance of 0), got 0");
  REFUSES(layer_by_rows(x, one, one, 0),
          "eps: wanted more than 0 (row 3 has a variance of 0), got 0");
  const Tensor<2> equal = 0.1f * xt::ones<float>({1, 577});
  REFUSES(layer_by_rows(equal, full(577, 1), full(577, 0), 0),
          "eps: wanted more than 0 (row 0 has a variance of 0), got 0");
  REFUSES(rms_by_rows(Tensor<2>{{0}, {1}}, full(1, 1), 0),
          "eps: wanted more than 0 (row 0 has a mean square of 0), got 0");
  REFUSES(rms_norm(x, one, -1), "eps: wanted 0 or more, got -1");
  REFUSES(rms_norm(x, one, std::nanf("")), "eps: wanted 0 or more, got nan");
  REFUSES(rms_by_rows(x, one, std::nanf("")), "eps: wanted 0 or more, got nan");
  REFUSES(layer_norm(x, one, one, std::nanf("")), "eps: wanted 0 or more, got nan");
  REFUSES(layer_by_rows(x, one, one, std::nanf("")), "eps: wanted 0 or more, got nan");
}

TEST_CASE("rms_norm: an eps of 0 is refused for a row whose squares are all 0 as floats") {
  const Tensor<2> x = {{1, 2}, {1e-30f, -1e-30f}};  // 1e-60 is far below the smallest float
  const char* message = "eps: wanted more than 0 (row 1 has a mean square of 0), got 0";
  REFUSES(rms_norm(x, full(2, 1), 0), message);
  REFUSES(rms_by_rows(x, full(2, 1), 0), message);
}

TEST_CASE("a row that is refused for an eps of 0 leaves all of y unchanged, also where y is x") {
  const Tensor<2> x = {{1, 3}, {0, 0}};  // both norms refuse row 1
  const Tensor<1> one = full(2, 1);
  const char* of_rms = "eps: wanted more than 0 (row 1 has a mean square of 0), got 0";
  const char* of_layer = "eps: wanted more than 0 (row 1 has a variance of 0), got 0";
  Tensor<2> y = full_rows(2, 2, 5), in_place = x;
  const Tensor<2> fives = y;
  REFUSES(rms_norm_rows(x, row(one), 0, y), of_rms);
  CHECK(all_close(y, fives, 0));
  REFUSES(rms_norm_rows(in_place, row(one), 0, in_place), of_rms);
  CHECK(all_close(in_place, x, 0));
  y = fives, in_place = x;
  REFUSES(layer_norm_rows(x, row(one), row(one), 0, y), of_layer);
  CHECK(all_close(y, fives, 0));
  REFUSES(layer_norm_rows(in_place, row(one), row(one), 0, in_place), of_layer);
  CHECK(all_close(in_place, x, 0));
}
