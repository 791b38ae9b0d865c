#include "07_swiglu/fast/feed_forward_rows.hpp"

#include <fmt/core.h>

#include <stdexcept>

#include "07_swiglu/fast/activation_rows.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

FeedForwardScratch::FeedForwardScratch(std::size_t max_rows, std::size_t F, Activation activation)
    : gate(is_gated(activation) ? empty(max_rows, F) : empty(0, 0)), up(empty(max_rows, F)) {}

/// The first T rows and F columns of one matrix of the scratch, which may be larger.
static Matrix room_in(Tensor<2>& part, const char* name, std::size_t T, std::size_t F) {
  if (part.shape(0) < T || part.shape(1) < F)
    throw std::invalid_argument(fmt::format("{}: wanted at least [{}, {}], got [{}, {}]", name, T,
                                            F, part.shape(0), part.shape(1)));
  return Matrix(part).rows_from(0, T).cols_from(0, F);
}

void feed_forward_rows(ConstMatrix x, const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch, Matrix y, const SeeGateAndUp& see) {
  expect_network(weights, activation, x.cols);
  const std::size_t T = x.rows, F = weights.w_up.rows();
  expect_shape("y", y, {T, x.cols});
  const bool gated = is_gated(activation);
  const Matrix up = room_in(scratch.up, "scratch.up", T, F);  // [T, F]
  const Matrix gate =                                         // [T, F], of a plain network [0, 0]
      room_in(scratch.gate, "scratch.gate", gated ? T : 0, gated ? F : 0);

  if (gated) {
    matmul_bt_each(x, {{weights.w_gate, gate}, {weights.w_up, up}});
    if (see) see(gate, up);
    gated_rows(activation, gate, up, up);
  } else {
    matmul_bt(x, weights.w_up, up);
    add_bias(weights.b_up, up);
    if (see) see(gate, up);
    activate_rows(activation, up, up);
  }
  matmul_bt(up, weights.w_down, y);
  add_bias(weights.b_down, y);
}

}  // namespace t2t
