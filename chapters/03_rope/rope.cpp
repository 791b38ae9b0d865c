#include "03_rope/rope.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_even(std::size_t D) {
  expect(D % 2 == 0 && D > 0, "D", "an even number above 0", D);
}

void expect_whole_heads(std::string_view name, std::size_t size, std::size_t D) {
  expect_even(D);
  if (size % D != 0) refuse(name, fmt::format("a multiple of D = {}", D), size);
}

void expect_positions(std::size_t start, std::size_t T, std::size_t S) {
  if (start > S || T > S - start)
    throw std::invalid_argument(fmt::format("position {}: the table ends at {}",
                                            double(start) + double(T) - 1, double(S) - 1));
}

void expect_table(const RopeTable& table, std::size_t D, std::size_t start, std::size_t T) {
  expect_even(D);
  const std::size_t S = table.cos.shape(0);
  expect_shape("table.cos", table.cos, {S, D / 2});
  expect_shape("table.sin", table.sin, {S, D / 2});
  expect_positions(start, T, S);
}

Frequencies rope_frequencies(std::size_t D, double theta) {
  expect_even(D);
  expect(theta > 0 && std::isfinite(theta), "theta", "a finite number above 0", theta);

  Frequencies frequencies;  // [D/2]
  for (std::size_t i = 0; i < D / 2; ++i)
    frequencies.push_back(std::pow(theta, -2.0 * double(i) / double(D)));
  return frequencies;
}

RopeTable rope_table(std::size_t S, const Frequencies& frequencies, float magnitude) {
  const bool usable = magnitude > 0 && std::isfinite(magnitude);
  expect(usable, "magnitude", "a finite number above 0", magnitude);
  const std::size_t pairs = frequencies.size();

  RopeTable table{empty(S, pairs), empty(S, pairs)};
  for_each_row(S, pairs, [&](std::size_t s) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const double angle = double(s) * frequencies[i];
      table.cos(s, i) = float(magnitude * std::cos(angle));
      table.sin(s, i) = float(magnitude * std::sin(angle));
    }
  });
  return table;
}

/// Pair i as the complex number x[2i] + x[2i+1]·√−1, rotated by one complex product.
static Tensor<3> neighbours_rotated(const Tensor<3>& x, const RopeTable& table, std::size_t start) {
  Tensor<3> y = Tensor<3>::from_shape(x.shape());  // [T, H, D]
  for (std::size_t t = 0; t < x.shape(0); ++t)
    for (std::size_t h = 0; h < x.shape(1); ++h)
      for (std::size_t i = 0; i < x.shape(2) / 2; ++i) {
        const std::complex<float> pair(x(t, h, 2 * i), x(t, h, 2 * i + 1));
        const std::complex<float> rotation(table.cos(start + t, i), table.sin(start + t, i));
        const std::complex<float> rotated = pair * rotation;
        y(t, h, 2 * i) = rotated.real();
        y(t, h, 2 * i + 1) = rotated.imag();
      }
  return y;
}

/// Each head's (first half, second half) as (−second, first): every pair rotated by 90 degrees.
static Tensor<3> rotate_half(const Tensor<3>& x) {
  const std::size_t D = x.shape(2), half = D / 2;
  Tensor<3> y = Tensor<3>::from_shape(x.shape());  // [T, H, D]
  xt::view(y, xt::all(), xt::all(), xt::range(0, half)) =
      -xt::view(x, xt::all(), xt::all(), xt::range(half, D));
  xt::view(y, xt::all(), xt::all(), xt::range(half, D)) =
      xt::view(x, xt::all(), xt::all(), xt::range(0, half));
  return y;
}

/// The table's rows start … start + T − 1, repeated for the second half: [T, 1, D], for all heads.
static Tensor<3> for_both_halves(const Tensor<2>& table, std::size_t start, std::size_t T) {
  const std::size_t pairs = table.shape(1);
  Tensor<3> both = empty(T, 1, 2 * pairs);
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t i = 0; i < pairs; ++i)
      both(t, 0, i) = both(t, 0, i + pairs) = table(start + t, i);
  return both;
}

static Tensor<3> halves_rotated(const Tensor<3>& x, const RopeTable& table, std::size_t start) {
  const Tensor<3> cos = for_both_halves(table.cos, start, x.shape(0));  // [T, 1, D]
  const Tensor<3> sin = for_both_halves(table.sin, start, x.shape(0));  // [T, 1, D]
  const Tensor<3> quarter_turn = rotate_half(x);                        // [T, H, D]
  return x * cos + quarter_turn * sin;
}

Tensor<2> rope(const Tensor<2>& x, std::size_t D, const RopeTable& table, std::size_t start,
               Pairing pairing) {
  const std::size_t T = x.shape(0), C = x.shape(1);
  expect_whole_heads("columns of x", C, D);
  expect_table(table, D, start, T);
  const Tensor<3> heads = xt::reshape_view(x, {T, C / D, D});  // [T, H, D]
  const Tensor<3> rotated = pairing == Pairing::neighbours ? neighbours_rotated(heads, table, start)
                                                           : halves_rotated(heads, table, start);
  return xt::reshape_view(rotated, {T, C});  // [T, H·D]
}

/// The place in the neighbours' order of a row in the halves' order: within its head, row i goes to
/// 2i and row i + D/2 to 2i + 1.
static std::size_t neighbours_row(std::size_t row, std::size_t D) {
  const std::size_t d = row % D, half = D / 2;
  return row - d + (d < half ? 2 * d : 2 * (d - half) + 1);
}

Tensor<2> permute_halves_to_neighbours(ConstMatrix w, std::size_t D) {
  expect_whole_heads("rows of w", w.rows, D);
  Tensor<2> permuted = empty(w.rows, w.cols);  // [H·D, C]
  for (std::size_t r = 0; r < w.rows; ++r)
    std::ranges::copy(w.row(r), row(permuted, neighbours_row(r, D)).begin());
  return permuted;
}

Tensor<2> permute_neighbours_to_halves(ConstMatrix w, std::size_t D) {
  expect_whole_heads("rows of w", w.rows, D);
  Tensor<2> permuted = empty(w.rows, w.cols);  // [H·D, C]
  for (std::size_t r = 0; r < w.rows; ++r)
    std::ranges::copy(w.row(neighbours_row(r, D)), row(permuted, r).begin());
  return permuted;
}

}  // namespace t2t
