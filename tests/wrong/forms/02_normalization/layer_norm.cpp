// [rows]
void layer_norm_rows(ConstMatrix x, ConstRow gain, ConstRow bias, float eps, Matrix y) {
  expect_shape("gain", gain, {x.cols});
  expect_shape("bias", bias, {x.cols});
  expect_shape("y", y, {x.rows, x.cols});
  fill(y, layer_norm(copy_of(x), copy_of(gain), copy_of(bias), eps));
}

// [formula]
Tensor<2> layer_norm(const Tensor<2>& x, const Tensor<1>& gain, const Tensor<1>& bias, float eps) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  layer_norm_rows(x, row(gain), row(bias), eps, y);
  return y;
}
