// [rows]
void activate_rows(Activation activation, ConstMatrix x, Matrix y) {
  expect_kind(activation, false);
  expect_shape("y", y, {x.rows, x.cols});
  fill(y, activate(activation, copy_of(x)));
}

void gated_rows(Activation activation, ConstMatrix gate, ConstMatrix up, Matrix y) {
  expect_kind(activation, true);
  expect_shape("up", up, {gate.rows, gate.cols});
  expect_shape("y", y, {gate.rows, gate.cols});
  fill(y, gated(activation, copy_of(gate), copy_of(up)));
}

// [formula]
Tensor<2> sigmoid(const Tensor<2>& x) {
  const Tensor<2> ones = xt::ones_like(x);
  Tensor<2> y = x;
  gated_rows(Activation::glu, x, ones, y);
  return y;
}

Tensor<2> relu(const Tensor<2>& x) {
  Tensor<2> y = x;
  activate_rows(Activation::relu, x, y);
  return y;
}

Tensor<2> gelu(const Tensor<2>& x) {
  Tensor<2> y = x;
  activate_rows(Activation::gelu, x, y);
  return y;
}

Tensor<2> gelu_tanh(const Tensor<2>& x) {
  Tensor<2> y = x;
  activate_rows(Activation::gelu_tanh, x, y);
  return y;
}

Tensor<2> silu(const Tensor<2>& x) {
  Tensor<2> y = x;
  activate_rows(Activation::silu, x, y);
  return y;
}
