// The backward pass of delta_rule.hpp by the recurrence run in reverse. It keeps the state of every
// token. For t from the end, with dS the gradient of the state after t:
//
//   dq = S·do       dS += q·doᵀ       du = dSᵀ·k       dk = dS·u
//   β and v         e = v − S′ᵀ·k     dβ = du·e        dv = β·du      dk −= S′·dv
//   before t        dS′ = dS − k·dvᵀ  dg = ⟨dS′, S′⟩   dS = e^g·dS′
//
// Under StateRule::add u is v: dv = du, dS′ = dS, and β has no gradient. chunks_backward.hpp
// computes the same in matrix products and keeps one state per chunk.
#pragma once

#include "24_delta_rule/delta_rule.hpp"
#include "tensor.hpp"

namespace t2t {

/// The gradients of a head's inputs and of the state before the first token.
struct DeltaGradients {
  DeltaTokens tokens;  // in the shapes of the inputs; beta is zeros under StateRule::add
  Tensor<2> state;     // [D, Dv]
};

/// Throws std::invalid_argument as expect_delta does, and when dout is not [T, Dv] or dstate not
/// [D, Dv].
void expect_delta_backward(const DeltaTokens& tokens, StateRule rule, ConstMatrix state,
                           ConstMatrix dout, ConstMatrix dstate);

/// The gradients of delta_recurrence from those of its output and of the state that it leaves.
/// Throws as expect_delta_backward does.
DeltaGradients delta_backward(const DeltaTokens& tokens, StateRule rule,
                              const Tensor<2>& state,    // [D, Dv], before the first token
                              const Tensor<2>& dout,     // [T, Dv]
                              const Tensor<2>& dstate);  // [D, Dv], of the last state

}  // namespace t2t
