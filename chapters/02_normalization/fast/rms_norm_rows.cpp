#include "02_normalization/fast/rms_norm_rows.hpp"

#include <cmath>

#include "02_normalization/rms_norm.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

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
  // Checked before the parallel loop, in which nothing may throw.
  expect_mean_squares(x, eps);

  for_each_row(T, C, [&](std::size_t t) { rms_norm_row(x.row(t), gain, eps, y.row(t)); });
}

}  // namespace t2t
