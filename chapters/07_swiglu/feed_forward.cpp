#include "07_swiglu/feed_forward.hpp"

#include <cmath>
#include <string>

#include "linalg.hpp"
#include "rows.hpp"
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

FeedForwardScratch feed_forward_scratch(std::size_t T_max, const FeedForwardWeights& weights) {
  const std::size_t F = weights.w_up.shape(0), F_gate = weights.w_gate.shape(0);
  return {empty(F_gate > 0 ? T_max : 0, F_gate), empty(T_max, F)};
}

static void expect_weights(const FeedForwardWeights& weights, Activation activation,
                           std::size_t C) {
  const std::size_t F = weights.w_up.shape(0);
  expect(F > 0, "F, the rows of w_up", "at least 1", 0);
  expect_shape("w_up", weights.w_up, {F, C});
  expect_shape("w_down", weights.w_down, {C, F});

  // A matrix or bias that would be ignored is a mistake as much as a missing one.
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

/// Adds bias [C], if there is one, to each row of x [T, C].
static void add_rows(const Tensor<1>& bias, Matrix x) {
  if (bias.size() == 0) return;
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const Row x_t = x.row(t);
    for (std::size_t c = 0; c < x_t.size(); ++c) x_t[c] += bias(c);
  });
}

void feed_forward_rows(ConstMatrix x, const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch, Matrix y) {
  expect_weights(weights, activation, x.cols);
  const std::size_t T = x.rows, F = weights.w_up.shape(0);
  expect_shape("y", y, {T, x.cols});
  expect(scratch.up.shape(0) >= T, "T, more tokens than the scratch has room for",
         "at most " + std::to_string(scratch.up.shape(0)), double(T));
  expect_shape("scratch.up", scratch.up, {scratch.up.shape(0), F});

  const Matrix up = Matrix(scratch.up).rows_from(0, T);  // [T, F]
  matmul_bt(x, weights.w_up, up);
  if (is_gated(activation)) {
    expect_shape("scratch.gate", scratch.gate, {scratch.up.shape(0), F});
    const Matrix gate = Matrix(scratch.gate).rows_from(0, T);  // [T, F]
    matmul_bt(x, weights.w_gate, gate);
    gated_rows(activation, gate, up, up);
  } else {
    add_rows(weights.b_up, up);
    activate_rows(activation, up, up);
  }
  matmul_bt(up, weights.w_down, y);
  add_rows(weights.b_down, y);
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
