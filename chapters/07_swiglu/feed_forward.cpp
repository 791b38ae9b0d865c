#include "07_swiglu/feed_forward.hpp"

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

/// Throws unless w_up is [F, C], with F above 0, and w_down [C, F].
static void expect_up_and_down(const Tensor<2>& x, const Tensor<2>& w_up, const Tensor<2>& w_down) {
  const std::size_t C = x.shape(1), F = w_up.shape(0);
  expect(F > 0, "F, the rows of w_up", "at least 1", F);
  expect_shape("w_up", w_up, {F, C});
  expect_shape("w_down", w_down, {C, F});
}

Tensor<2> gated_network(const Tensor<2>& x, const Tensor<2>& w_gate, const Tensor<2>& w_up,
                        const Tensor<2>& w_down, Activation activation) {
  expect_up_and_down(x, w_up, w_down);
  expect_shape("w_gate", w_gate, {w_up.shape(0), x.shape(1)});
  const Tensor<2> gate = matmul_bt(x, w_gate), up = matmul_bt(x, w_up);  // [T, F]
  return matmul_bt(gated(activation, gate, up), w_down);                 // [T, C]
}

Tensor<2> plain_network(const Tensor<2>& x, const Tensor<2>& w_up, const Tensor<1>& b_up,
                        const Tensor<2>& w_down, const Tensor<1>& b_down, Activation activation) {
  expect_up_and_down(x, w_up, w_down);
  if (b_up.size() > 0) expect_shape("b_up", b_up, {w_up.shape(0)});
  if (b_down.size() > 0) expect_shape("b_down", b_down, {x.shape(1)});
  Tensor<2> up = matmul_bt(x, w_up);  // [T, F]
  if (b_up.size() > 0) up += b_up;
  Tensor<2> y = matmul_bt(activate(activation, up), w_down);  // [T, C]
  if (b_down.size() > 0) y += b_down;
  return y;
}

std::size_t gated_width(std::size_t C, std::size_t multiple) {
  expect(C > 0, "C", "at least 1", C);
  expect(multiple > 0, "multiple", "at least 1", multiple);
  const std::size_t two_thirds = 8 * C / 3;
  return (two_thirds + multiple - 1) / multiple * multiple;
}

}  // namespace t2t
