// The backward pass of a mixture of experts. With y = Σ weight_i · expert_i(x),
//
//   dweight_i = dy·expert_i(x)             a dot product: how much more of this expert would help
//   expert i receives the gradient weight_i·dy, and returns those of x and of its matrices
//   dscores   = the router's backward pass of dweight (router.hpp), and what balances the load
//   dx        = Σ over the chosen of the experts' gradients of x + dscores·router
//
// A shared network receives the gradient dy of every token, times its gate, if it has one.
//
// An expert that a token did not choose gets no gradient from it: it learns only from its own
// tokens. And the choice is not a smooth function of the scores, so nothing is learned through it:
// the router learns from the weights of the chosen experts, and from the balancing losses.
#pragma once

#include <span>

#include "14_mixture_of_experts/experts.hpp"
#include "14_mixture_of_experts/training/balance.hpp"

namespace t2t {

/// How the load is balanced in training. 0 switches a part off.
struct Balance {
  float switch_loss = 0;  // factor of Switch's loss
  float z_loss = 0;       // factor of the z-loss
  float bias_rate = 0;    // step of the bias of the choice
  double slack = 0;       // of the capacity; 0: no capacity
};

/// The gradients to add to.
struct MixtureGradients {
  Weight& router;                         // [E, C]
  std::span<FeedForwardWeights> experts;  // [E]
  FeedForwardWeights& shared;             // used only if there is a shared network
  Weight& shared_gate;                    // [1, C]; used only if there is a gate
};

/// The choices of the forward pass: route, with the capacity, if there is one.
Routed choices_of(ConstMatrix x,  // [T, C]
                  const Mixture& mixture, const Balance& balance);

/// Writes dx and adds to the gradients, for y and the balancing losses, whose sum it returns. The
/// networks are gated and without biases. Throws std::invalid_argument when shapes disagree, unless
/// there are gradients for E experts, and for an activation without a gate.
double experts_backward(ConstMatrix x,  // [T, C]
                        const Mixture& mixture, const Routed& routed, const Balance& balance,
                        ConstMatrix dy,  // [T, C]
                        Matrix dx,       // [T, C], to be written
                        const MixtureGradients& gradients);

}  // namespace t2t
