// The weights of a feed-forward network as a model keeps them. A Weight holds floats, or the packed
// weights of chapter 12 (common/weight.hpp).
#pragma once

#include "07_swiglu/activations.hpp"
#include "random.hpp"
#include "tensor.hpp"
#include "weight.hpp"

namespace t2t {

/// F is the number of rows of w_up. What a network lacks stays empty: w_gate is [0, 0] in a plain
/// one, and a missing bias is [0].
struct FeedForwardWeights {
  Weight w_gate;     // [F, C], only if gated
  Weight w_up;       // [F, C]
  Weight w_down;     // [C, F]
  Tensor<1> b_up;    // [F] or empty, plain only
  Tensor<1> b_down;  // [C] or empty, plain only
};

/// Draws w_gate (if gated), w_up and w_down, in this order, each row by row: the first two from
/// N(0, 1/C), w_down from N(0, 1/F). Independent inputs from N(0, 1) then give outputs whose root
/// mean square is between 0.5 and 0.8, depending on the activation. No biases.
FeedForwardWeights feed_forward_weights(std::size_t C, std::size_t F, Activation activation,
                                        Random& random);

/// Throws std::invalid_argument, naming the weight and both shapes, when a weight does not fit, is
/// missing or would not be used by this activation: the first of w_up, w_down, w_gate, b_up and
/// b_down. When F is 0, it names F and no shapes.
void expect_network(const FeedForwardWeights& weights, Activation activation, std::size_t C);

/// The formula, gated_network or plain_network, with the weights as floats. Returns y, [T, C].
/// Throws as expect_network does.
Tensor<2> feed_forward(const Tensor<2>& x,  // [T, C]
                       const FeedForwardWeights& weights, Activation activation);

/// The number of weights and biases.
std::size_t parameter_count(const FeedForwardWeights& weights);

}  // namespace t2t
