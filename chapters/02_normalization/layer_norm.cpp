#include "02_normalization/layer_norm.hpp"

#include <numeric>
#include <string>

#include "shapes.hpp"

namespace t2t {

/// In double: the mean of equal elements is then exact, and their variance exactly 0.
static double variance_of(ConstRow x) {
  const double C = double(x.size()), mean = std::accumulate(x.begin(), x.end(), 0.0) / C;
  double squares = 0;
  for (const float v : x) squares += (v - mean) * (v - mean);
  return squares / C;
}

/// If eps is above 0, no row can fail.
void expect_variances(ConstMatrix x, float eps) {
  expect(x.cols > 0, "x", "at least 1 channel", 0);
  expect(eps >= 0, "eps", "0 or more", eps);
  if (eps > 0) return;
  for (std::size_t t = 0; t < x.rows; ++t)
    expect(float(variance_of(x.row(t))) != 0, "eps",
           "more than 0 (row " + std::to_string(t) + " has a variance of 0)", eps);
}

Tensor<2> layer_norm(const Tensor<2>& x, const Tensor<1>& gain, const Tensor<1>& bias, float eps) {
  expect_shape("gain", gain, {x.shape(1)});
  expect_shape("bias", bias, {x.shape(1)});
  expect_variances(x, eps);

  const Tensor<1> mean = xt::mean(x, {1});                           // [T]
  const Tensor<2> centred = x - as_column(mean);                     // [T, C]
  const Tensor<1> variance = xt::mean(centred * centred, {1});       // [T]
  const Tensor<1> inverse_deviation = 1 / xt::sqrt(variance + eps);  // [T]

  return gain * centred * as_column(inverse_deviation) + bias;  // [T, C]
}

}  // namespace t2t
