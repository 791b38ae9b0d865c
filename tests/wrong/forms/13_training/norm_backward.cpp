// [rows]
void add_norm_backward(ConstMatrix x, const NormWeights& weights, Norm kind, float eps,
                       ConstMatrix dy, Matrix dx, NormWeights& gradients, Row scratch) {
  const std::size_t T = x.rows, C = x.cols;
  expect_norm(x, weights, kind, dy);
  expect_shape("dx", dx, {T, C});
  expect_shape("the gain's gradient", gradients.gain, {C});
  expect_shape("the bias's gradient", gradients.bias, {kind == Norm::layer ? C : 0});
  expect(scratch.size() >= 2 * T, "scratch", "at least 2 numbers for each row",
         double(scratch.size()));
  const NormGradients own = norm_backward(copy_of(x), weights, kind, eps, copy_of(dy));
  fill(dx, copy_of(dx) + own.x);
  gradients.gain += own.weights.gain;
  if (kind == Norm::layer) gradients.bias += own.weights.bias;
}

// [formula]
NormGradients norm_backward(const Tensor<2>& x, const NormWeights& weights, Norm kind, float eps,
                            const Tensor<2>& dy) {
  expect_norm(x, weights, kind, dy);
  const std::size_t T = x.shape(0), C = x.shape(1);
  NormGradients own{xt::zeros<float>({T, C}), {xt::zeros<float>({C}), {}}};
  if (kind == Norm::layer) own.weights.bias = xt::zeros<float>({C});
  Tensor<1> scratch = empty(2 * T);
  add_norm_backward(x, weights, kind, eps, dy, own.x, own.weights, row(scratch));
  return own;
}
