#include "02_normalization/layer_norm.hpp"

#include <cmath>
#include <string>

#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

struct Moments {
  float mean, variance;
};

/// Mean and variance from one pass: the variance is mean(d²) − mean(d)², where d = x − shift. The
/// shift must be near the mean, or the subtraction loses its digits. The mean of the row's first 64
/// numbers is near enough: at most sqrt(C / 64) deviations from the mean of all.
static Moments moments(ConstRow x) {
  const ConstRow first = x.first(std::min<std::size_t>(64, x.size()));
  const auto from_first = [&](Lanes v) { return v - x[0]; };
  const float shift = x[0] + sum_of(first, from_first, x[0]) / float(first.size());

  constexpr std::size_t W = Lanes::size;
  Lanes sum[4] = {Lanes(0), Lanes(0), Lanes(0), Lanes(0)};
  Lanes squares[4] = {Lanes(0), Lanes(0), Lanes(0), Lanes(0)};
  const auto add = [&](std::size_t i, Lanes value) {
    const Lanes d = value - shift;
    sum[i] += d;
    squares[i] += d * d;
  };
  std::size_t c = 0;
  for (; c + 4 * W <= x.size(); c += 4 * W)
    for (std::size_t i = 0; i < 4; ++i) add(i, Lanes::load_unaligned(&x[c + i * W]));
  // The last register is filled up with shift, so that the filler adds shift − shift = 0.
  for (; c < x.size(); c += W) add(0, load_part(&x[c], std::min(W, x.size() - c), shift));

  const float C = float(x.size());
  const float mean_d = add_lanes((sum[0] + sum[1]) + (sum[2] + sum[3])) / C;
  const float mean_d2 = add_lanes((squares[0] + squares[1]) + (squares[2] + squares[3])) / C;
  return {shift + mean_d, std::max(mean_d2 - mean_d * mean_d, 0.0f)};
}

/// The rows are checked before the parallel loop, in which nothing may throw. With eps above 0 no
/// row can fail.
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
  const auto normed = [&](Lanes value, Lanes gain, Lanes bias) {
    return gain * ((value - all.mean) * inverse_deviation) + bias;
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
