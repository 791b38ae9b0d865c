#include "07_swiglu/fast/feed_forward_weights.hpp"

#include <cmath>

#include "07_swiglu/feed_forward.hpp"
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
  expect(F > 0, "F, the rows of w_up", "at least 1", F);
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
  Tensor<2> gate, up, down;  // of packed weights
  const Tensor<2>&w_up = floats_of(weights.w_up, up), &w_down = floats_of(weights.w_down, down);
  if (is_gated(activation))
    return gated_network(x, floats_of(weights.w_gate, gate), w_up, w_down, activation);
  return plain_network(x, w_up, weights.b_up, w_down, weights.b_down, activation);
}

std::size_t parameter_count(const FeedForwardWeights& weights) {
  return weights.w_gate.size() + weights.w_up.size() + weights.w_down.size() + weights.b_up.size() +
         weights.b_down.size();
}

}  // namespace t2t
