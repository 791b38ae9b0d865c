#include "07_swiglu/feed_forward.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

FeedForwardWeights feed_forward_weights(std::size_t C, std::size_t F, Activation activation,
                                        Random& random) {
  const float to_hidden = 1 / std::sqrt(float(C)), to_model = 1 / std::sqrt(float(F));
  FeedForwardWeights weights;
  if (is_gated(activation)) weights.w_gate = random.normal<2>({F, C}, to_hidden);
  weights.w_up = random.normal<2>({F, C}, to_hidden);
  weights.w_down = random.normal<2>({C, F}, to_model);
  return weights;
}

static void expect_weights(const FeedForwardWeights& weights, Activation activation,
                           std::size_t C) {
  const std::size_t F = weights.w_up.rows();
  expect(F > 0, "F, the rows of w_up", "at least 1", 0);
  expect_shape("w_up", weights.w_up, {F, C});
  expect_shape("w_down", weights.w_down, {C, F});

  // A matrix or a bias that would be ignored is refused like one that is missing.
  const bool gated = is_gated(activation);
  expect_shape("w_gate", weights.w_gate, {gated ? F : 0, gated ? C : 0});
  expect_shape("b_up", weights.b_up, {gated || weights.b_up.size() == 0 ? 0 : F});
  expect_shape("b_down", weights.b_down, {gated || weights.b_down.size() == 0 ? 0 : C});
}

Tensor<2> feed_forward(const Tensor<2>& x, const FeedForwardWeights& weights,
                       Activation activation) {
  expect_weights(weights, activation, x.shape(1));
  Tensor<2> up = matmul_bt(x, weights.w_up);  // [T, F]

  if (is_gated(activation)) {
    const Tensor<2> gate = matmul_bt(x, weights.w_gate);            // [T, F]
    return matmul_bt(gated(activation, gate, up), weights.w_down);  // [T, C]
  }
  if (weights.b_up.size() > 0) up += weights.b_up;
  Tensor<2> y = matmul_bt(activate(activation, up), weights.w_down);  // [T, C]
  if (weights.b_down.size() > 0) y += weights.b_down;
  return y;
}

FeedForwardScratch::FeedForwardScratch(std::size_t T_max, std::size_t F, Activation activation)
    : gate(is_gated(activation) ? empty(T_max, F) : empty(0, 0)), up(empty(T_max, F)) {}

/// The first T rows and F columns of one matrix of the scratch, which may be larger.
static Matrix room_in(Tensor<2>& part, const char* name, std::size_t T, std::size_t F) {
  if (part.shape(0) < T || part.shape(1) < F)
    throw std::invalid_argument(fmt::format("{}: wanted at least [{}, {}], got [{}, {}]", name, T,
                                            F, part.shape(0), part.shape(1)));
  return Matrix(part).rows_from(0, T).cols_from(0, F);
}

void feed_forward_rows(ConstMatrix x, const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch, Matrix y, const SeeGateAndUp& see) {
  expect_weights(weights, activation, x.cols);
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

std::size_t gated_width(std::size_t C, std::size_t multiple) {
  expect(C > 0, "C", "at least 1", double(C));
  expect(multiple > 0, "multiple", "at least 1", double(multiple));
  const std::size_t two_thirds = 8 * C / 3;
  return (two_thirds + multiple - 1) / multiple * multiple;
}

std::size_t parameter_count(const FeedForwardWeights& weights) {
  return weights.w_gate.size() + weights.w_up.size() + weights.w_down.size() + weights.b_up.size() +
         weights.b_down.size();
}

}  // namespace t2t
