// The backward pass of chapter 07's activations: the derivative of each, alone and in a gate.
//
//   y = act(x)           dx = dy·act′(x)
//   y = act(gate)·up     dup = dy·act(gate)        dgate = dy·up·act′(gate)
//
//   relu′ = 1 above 0, else 0        gelu′(x) = Φ(x) + x·φ(x), φ the bell curve e^(−x²/2)/√(2π)
//   σ′ = σ·(1 − σ)                   silu′(x) = σ(x)·(1 + x·(1 − σ(x)))
//
// At 0 itself the derivative of relu is defined as 0, as in PyTorch. For x of up to 1e18 either way
// a derivative is off by at most 64·2⁻²⁴ with gelu_tanh and geglu_tanh, by 20·2⁻²⁴ with the others,
// because far above 0, 1 − σ has lost the last bits of σ. Papers: see activations.hpp.
#pragma once

#include "07_swiglu/activations.hpp"
#include "tensor.hpp"

namespace t2t {

/// The formula: the derivative of an activation without a gate at each x, or of the function that a
/// gated one applies to its gate (silu for swiglu, the sigmoid for glu). [T, F]
Tensor<2> activation_derivative(Activation activation, const Tensor<2>& x);

/// The row kernel for one without a gate: dy becomes dx. Allocates nothing. Throws
/// std::invalid_argument for a gated one, and when shapes disagree.
void activate_backward_rows(Activation activation,
                            ConstMatrix x,  // [T, F], the activation's input
                            Matrix dy);     // [T, F], becomes dx

/// The row kernel for one with a gate: dy becomes dup, and dgate is written, which must not overlap
/// the others. Allocates nothing. Throws std::invalid_argument for one without a gate, and when
/// shapes disagree.
void gated_backward_rows(Activation activation,
                         ConstMatrix gate,  // [T, F]
                         ConstMatrix up,    // [T, F]
                         Matrix dy,         // [T, F], becomes dup
                         Matrix dgate);     // [T, F]

}  // namespace t2t
