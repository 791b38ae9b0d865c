#include "13_training/backward/norm_backward.hpp"

#include "shapes.hpp"

namespace t2t {

/// The mean of each row, as a column of its matrix.
static Tensor<1> row_means(const Tensor<2>& x) { return xt::mean(x, {1}); }

void expect_norm(ConstMatrix x, const NormWeights& weights, Norm kind, ConstMatrix dy) {
  expect_shape("gain", weights.gain, {x.cols});
  expect_shape("bias", weights.bias, {kind == Norm::layer ? x.cols : 0});
  expect_shape("dy", dy, {x.rows, x.cols});
}

NormGradients norm_backward(const Tensor<2>& x, const NormWeights& weights, Norm kind, float eps,
                            const Tensor<2>& dy) {
  expect_norm(x, weights, kind, dy);
  Tensor<2> centred = x;  // [T, C]
  if (kind == Norm::layer) centred = x - as_column(row_means(x));
  const Tensor<1> r = 1 / xt::sqrt(row_means(centred * centred) + eps);  // [T]
  const Tensor<2> normed = centred * as_column(r);                       // [T, C], x̂

  const Tensor<2> u = weights.gain * dy;                               // [T, C]
  const Tensor<1> projection = row_means(u * normed);                  // [T]
  Tensor<2> dx = (u - normed * as_column(projection)) * as_column(r);  // [T, C]
  if (kind == Norm::layer) dx -= as_column(row_means(u)) * as_column(r);

  NormGradients gradients{dx, {xt::sum(dy * normed, {0}), {}}};
  if (kind == Norm::layer) gradients.weights.bias = xt::sum(dy, {0});
  return gradients;
}

}  // namespace t2t
