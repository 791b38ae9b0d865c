#include "02_normalization/rms_norm.hpp"

#include <string>

#include "lanes.hpp"
#include "shapes.hpp"

namespace t2t {

/// If eps is above 0, no row can fail.
void expect_mean_squares(ConstMatrix x, float eps) {
  expect(x.cols > 0, "x", "at least 1 channel", 0);
  expect(eps >= 0, "eps", "0 or more", eps);
  if (eps > 0) return;
  for (std::size_t t = 0; t < x.rows; ++t)
    expect(sum_of_squares(x.row(t)) != 0, "eps",
           "more than 0 (row " + std::to_string(t) + " has a mean square of 0)", eps);
}

Tensor<2> rms_norm(const Tensor<2>& x, const Tensor<1>& gain, float eps) {
  expect_shape("gain", gain, {x.shape(1)});
  expect_mean_squares(x, eps);

  // Assigning to a tensor computes the mean once. xt::mean itself returns an expression: with auto
  // it would be recomputed for each element of y.
  const Tensor<1> mean_square = xt::mean(x * x, {1});             // [T]
  const Tensor<1> inverse_rms = 1 / xt::sqrt(mean_square + eps);  // [T]

  return gain * x * as_column(inverse_rms);  // [T, C]
}

}  // namespace t2t
