#include "07_swiglu/feed_forward.hpp"

#include <cmath>

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

void expect_network(const FeedForwardWeights& weights, Activation activation, std::size_t C) {
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
  expect_network(weights, activation, x.shape(1));
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
