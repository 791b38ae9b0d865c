#include "02_normalization/layer_norm.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

struct Moments {
  float mean, variance;
};

/// In one pass over the row, which sums the differences from s and their squares. The closer s is
/// to the mean, the fewer digits the subtraction loses.
static Moments moments_around(float s, ConstRow x) {
  struct Sums {
    Lanes d, squares;
  };
  const auto of = [&](Lanes v) { return Sums{v - s, (v - s) * (v - s)}; };
  const auto join = [](Sums a, Sums b) { return Sums{a.d + b.d, a.squares + b.squares}; };
  const Sums sums = fold_lanes(x, s, Sums{Lanes(0), Lanes(0)}, of, join);
  const float C = float(x.size()), mean = add_lanes(sums.d) / C;  // of the differences
  return {s + mean, add_lanes(sums.squares) / C - mean * mean};
}

/// Around the mean of the first 64 numbers, and once more around the mean itself if they were more
/// than half a deviation off. The variance of equal numbers is exactly 0.
static Moments moments(ConstRow x) {
  const ConstRow some = x.first(std::min<std::size_t>(64, x.size()));
  const auto from_first = [&](Lanes v) { return v - x[0]; };
  const float near = x[0] + sum_of(some, from_first, x[0]) / float(some.size());
  const Moments found = moments_around(near, x);
  const float off = found.mean - near;
  return 4 * off * off <= found.variance ? found : moments_around(found.mean, x);
}

/// The rows are checked before the parallel loop, in which nothing may throw. If eps is above 0,
/// no row can fail.
static void expect_no_division_by_zero(ConstMatrix x, float eps) {
  expect(x.cols > 0, "x", "at least 1 channel", 0);
  expect(eps >= 0, "eps", "0 or more", eps);
  if (eps > 0) return;
  for (std::size_t t = 0; t < x.rows; ++t)
    expect(moments(x.row(t)).variance != 0, "eps",
           "more than 0 (row " + std::to_string(t) + " has a variance of 0)", eps);
}

Tensor<2> layer_norm(const Tensor<2>& x, const Tensor<1>& gain, const Tensor<1>& bias, float eps) {
  expect_shape("gain", gain, {x.shape(1)});
  expect_shape("bias", bias, {x.shape(1)});
  expect_no_division_by_zero(x, eps);

  const Tensor<1> mean = xt::mean(x, {1});                           // [T]
  const Tensor<2> centred = x - as_column(mean);                     // [T, C]
  const Tensor<1> variance = xt::mean(centred * centred, {1});       // [T]
  const Tensor<1> inverse_deviation = 1 / xt::sqrt(variance + eps);  // [T]

  return gain * centred * as_column(inverse_deviation) + bias;  // [T, C]
}

static void layer_norm_row(ConstRow x, ConstRow gain, ConstRow bias, float eps, Row y) {
  const Moments all = moments(x);
  const float inverse_deviation = 1 / std::sqrt(all.variance + eps);
  const auto normed = [&](Lanes v, Lanes g, Lanes b) {
    return g * ((v - all.mean) * inverse_deviation) + b;
  };
  map_row(y, normed, x, gain, bias);
}

void layer_norm_rows(ConstMatrix x, ConstRow gain, ConstRow bias, float eps, Matrix y) {
  const std::size_t T = x.rows, C = x.cols;
  expect_shape("gain", gain, {C});
  expect_shape("bias", bias, {C});
  expect_shape("y", y, {T, C});
  expect_no_division_by_zero(x, eps);

  for_each_row(T, C, [&](std::size_t t) { layer_norm_row(x.row(t), gain, bias, eps, y.row(t)); });
}

}  // namespace t2t
