#include "07_swiglu/feed_forward.hpp"

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

void expect_pair(std::size_t channels, const Tensor<2>& up, const Tensor<2>& down) {
  const std::size_t hidden = up.shape(0);
  if (hidden == 0) refuse("F, the rows of w_up", "at least 1", hidden);
  expect_shape("w_up", up, {hidden, channels});
  expect_shape("w_down", down, {channels, hidden});
}

/// Adds the bias to every row; an empty one adds nothing.
void add_to_rows(const Tensor<1>& bias, Tensor<2>& rows) {
  if (bias.size() == 0) return;
  for (std::size_t t = 0; t < rows.shape(0); ++t)
    for (std::size_t c = 0; c < rows.shape(1); ++c) rows(t, c) += bias(c);
}

}  // namespace

Tensor<2> gated_network(const Tensor<2>& x, const Tensor<2>& w_gate, const Tensor<2>& w_up,
                        const Tensor<2>& w_down, Activation activation) {
  const std::size_t channels = x.shape(1), hidden = w_up.shape(0);
  expect_pair(channels, w_up, w_down);
  expect_shape("w_gate", w_gate, {hidden, channels});
  const Tensor<2> opening = matmul_bt(x, w_gate);
  const Tensor<2> content = matmul_bt(x, w_up);
  const Tensor<2> passed = gated(activation, opening, content);
  return matmul_bt(passed, w_down);
}

Tensor<2> plain_network(const Tensor<2>& x, const Tensor<2>& w_up, const Tensor<1>& b_up,
                        const Tensor<2>& w_down, const Tensor<1>& b_down, Activation activation) {
  const std::size_t channels = x.shape(1), hidden = w_up.shape(0);
  expect_pair(channels, w_up, w_down);
  if (b_up.size() != 0) expect_shape("b_up", b_up, {hidden});
  if (b_down.size() != 0) expect_shape("b_down", b_down, {channels});

  Tensor<2> inner = matmul_bt(x, w_up);
  inner = activate(activation, inner);  // WRONG
  add_to_rows(b_up, inner);  // WRONG
  Tensor<2> result = matmul_bt(inner, w_down);
  add_to_rows(b_down, result);
  return result;
}

std::size_t gated_width(std::size_t C, std::size_t multiple) {
  if (C == 0) refuse("C", "at least 1", C);
  if (multiple == 0) refuse("multiple", "at least 1", multiple);
  std::size_t width = 8 * C / 3;
  if (const std::size_t beyond = width % multiple; beyond != 0) width += multiple - beyond;
  return width;
}

}  // namespace t2t
