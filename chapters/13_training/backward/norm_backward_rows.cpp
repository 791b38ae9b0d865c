#include "13_training/backward/norm_backward_rows.hpp"

#include <cmath>

#include "13_training/backward/column_sums.hpp"
#include "13_training/backward/linear_backward.hpp"
#include "13_training/backward/norm_backward.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// What a row's gradient needs of the row.
struct RowOfNorm {
  float mean, r;
};

static RowOfNorm row_of_norm(ConstRow x, Norm kind, float eps) {
  const float C = float(x.size());
  const float mean = kind == Norm::layer ? sum_row(x) / C : 0;
  const auto square = [&](Lanes v) { return (v - mean) * (v - mean); };
  return {mean, 1 / std::sqrt(sum_of(x, square, mean) / C + eps)};
}

/// Σ u and Σ u·(x − mean) of a row, with u = gain·dy. A long row is summed in halves, as in
/// fold_lanes.
struct RowSums {
  float u, projection;
};
static RowSums row_sums(ConstRow x, float mean, ConstRow gain, ConstRow dy) {
  if (x.size() > longest_run) {
    const std::size_t half = first_half(x.size());
    const RowSums a = row_sums(x.first(half), mean, gain.first(half), dy.first(half));
    const RowSums b = row_sums(x.subspan(half), mean, gain.subspan(half), dy.subspan(half));
    return {a.u + b.u, a.projection + b.projection};
  }
  float sum = 0, sum_along = 0;
#pragma omp simd reduction(+ : sum, sum_along)
  for (std::size_t c = 0; c < x.size(); ++c) {
    const float u = gain[c] * dy[c];
    sum += u;
    sum_along += u * (x[c] - mean);
  }
  return {sum, sum_along};
}

/// dx += the gradient of one row.
static void add_row_gradient(ConstRow x, ConstRow gain, RowOfNorm of, Norm kind, ConstRow dy,
                             Row dx) {
  const RowSums sums = row_sums(x, of.mean, gain, dy);
  const float C = float(x.size()), projection = sums.projection * of.r / C;
  const float mean = kind == Norm::layer ? sums.u / C : 0;
#pragma omp simd
  for (std::size_t c = 0; c < x.size(); ++c)
    dx[c] += of.r * (gain[c] * dy[c] - mean - (x[c] - of.mean) * of.r * projection);
}

void add_norm_backward(ConstMatrix x, const NormWeights& weights, Norm kind, float eps,
                       ConstMatrix dy, Matrix dx, NormWeights& gradients, Row scratch) {
  const std::size_t T = x.rows, C = x.cols;
  expect_norm(x, weights, kind, dy);
  expect_shape("dx", dx, {T, C});
  expect_shape("the gain's gradient", gradients.gain, {C});
  expect_shape("the bias's gradient", gradients.bias, {kind == Norm::layer ? C : 0});
  expect(scratch.size() >= 2 * T, "scratch", "at least 2 elements for each row", scratch.size());
  const Row means = scratch.first(T), r = scratch.subspan(T, T);

  const ConstRow gain = row(weights.gain);
  for_each_row(T, C, [&](std::size_t t) {
    const RowOfNorm of = row_of_norm(x.row(t), kind, eps);
    means[t] = of.mean, r[t] = of.r;
    add_row_gradient(x.row(t), gain, of, kind, dy.row(t), dx.row(t));
  });

  add_column_sums(T, row(gradients.gain), [&](std::size_t t, std::size_t from, Row sums) {
    const float *x_t = &x.row(t)[from], *dy_t = &dy.row(t)[from];
#pragma omp simd
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += dy_t[c] * ((x_t[c] - means[t]) * r[t]);
  });
  add_bias_gradient(dy, gradients.bias);  // RMSNorm has no bias: this is empty
}

}  // namespace t2t
