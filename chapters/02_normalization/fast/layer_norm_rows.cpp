#include "02_normalization/fast/layer_norm_rows.hpp"

#include <algorithm>
#include <cmath>

#include "02_normalization/layer_norm.hpp"
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

/// Around the mean of the first 64 elements, and once more around the row's own mean if the first
/// was more than half a standard deviation off. The variance of equal elements is exactly 0.
static Moments moments(ConstRow x) {
  const ConstRow some = x.first(std::min<std::size_t>(64, x.size()));
  const auto from_first = [&](Lanes v) { return v - x[0]; };
  const float near = x[0] + sum_of(some, from_first, x[0]) / float(some.size());
  const Moments found = moments_around(near, x);
  const float off = found.mean - near;
  return 4 * off * off <= found.variance ? found : moments_around(found.mean, x);
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
  // Checked before the parallel loop, in which nothing may throw.
  expect_variances(x, eps);

  for_each_row(T, C, [&](std::size_t t) { layer_norm_row(x.row(t), gain, bias, eps, y.row(t)); });
}

}  // namespace t2t
