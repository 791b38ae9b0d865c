#include "02_normalization/rms_norm.hpp"

#include <cmath>
#include <string>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// The rows are checked before the parallel loop, in which nothing may throw. If eps is above
/// 0, no row can fail.
static void expect_no_division_by_zero(ConstMatrix x, float eps) {
  expect(x.cols > 0, "x", "at least 1 channel", 0);
  expect(eps >= 0, "eps", "0 or more", eps);
  if (eps > 0) return;
  for (std::size_t t = 0; t < x.rows; ++t)
    expect(sum_of_squares(x.row(t)) != 0, "eps",
           "more than 0 (row " + std::to_string(t) + " has a mean square of 0)", eps);
}

Tensor<2> rms_norm(const Tensor<2>& x, const Tensor<1>& gain, float eps) {
  expect_shape("gain", gain, {x.shape(1)});
  expect_no_division_by_zero(x, eps);

  // Assigning to a tensor computes the mean once. xt::mean itself returns an expression: with auto
  // it would be computed again for each number of y.
  const Tensor<1> mean_square = xt::mean(x * x, {1});             // [T]
  const Tensor<1> inverse_rms = 1 / xt::sqrt(mean_square + eps);  // [T]

  return gain * x * as_column(inverse_rms);  // [T, C]
}

static void rms_norm_row(ConstRow x, ConstRow gain, float eps, Row y) {
  const float mean_square = sum_of_squares(x) / float(x.size());
  const float inverse_rms = 1 / std::sqrt(mean_square + eps);
  const auto scaled = [&](Lanes v, Lanes g) { return g * (v * inverse_rms); };
  map_row(y, scaled, x, gain);
}

void rms_norm_rows(ConstMatrix x, ConstRow gain, float eps, Matrix y) {
  const std::size_t T = x.rows, C = x.cols;
  expect_shape("gain", gain, {C});
  expect_shape("y", y, {T, C});
  expect_no_division_by_zero(x, eps);

  for_each_row(T, C, [&](std::size_t t) { rms_norm_row(x.row(t), gain, eps, y.row(t)); });
}

}  // namespace t2t
