// [rows]
void rms_norm_rows(ConstMatrix x, ConstRow gain, float eps, Matrix y) {
  expect_shape("gain", gain, {x.cols});
  expect_shape("y", y, {x.rows, x.cols});
  fill(y, rms_norm(copy_of(x), copy_of(gain), eps));
}

// [formula]
Tensor<2> rms_norm(const Tensor<2>& x, const Tensor<1>& gain, float eps) {
  Tensor<2> y = empty(x.shape(0), x.shape(1));
  rms_norm_rows(x, row(gain), eps, y);
  return y;
}
