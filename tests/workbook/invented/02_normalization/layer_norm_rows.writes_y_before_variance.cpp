#include "02_normalization/fast/layer_norm_rows.hpp"

#include <cmath>
#include <numeric>

#include "02_normalization/layer_norm.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

double average(ConstRow values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

double variance_about(ConstRow values, double centre) {
  const auto add_square = [centre](double total, float value) {
    return total + (value - centre) * (value - centre);
  };
  return std::accumulate(values.begin(), values.end(), 0.0, add_square) / double(values.size());
}

void normalize(ConstRow in, ConstRow gain, ConstRow bias, float eps, Row out) {
  const std::size_t width = in.size();
  const double centre = average(in);
  for (std::size_t c = 0; c < width; ++c) out[c] = float(in[c] - centre);  // WRONG
  const double factor = 1 / std::sqrt(variance_about(in, centre) + double(eps));  // WRONG
  for (std::size_t c = 0; c < width; ++c) {
    const float scaled = float(out[c] * factor);
    out[c] = gain[c] * scaled + bias[c];
  }
}

}  // namespace

void layer_norm_rows(ConstMatrix x, ConstRow gain, ConstRow bias, float eps, Matrix y) {
  expect_shape("gain", gain, {x.cols});
  expect_shape("bias", bias, {x.cols});
  expect_shape("y", y, {x.rows, x.cols});
  expect_variances(x, eps);

  for_each_row(x.rows, x.cols,
               [&](std::size_t t) { normalize(x.row(t), gain, bias, eps, y.row(t)); });
}

}  // namespace t2t
