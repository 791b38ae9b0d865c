// The feed-forward network: for each token alone, from C channels up to F hidden values, an
// activation, and down to C channels again.
//
//   gated:  y = (act(x·W_gateᵀ) · (x·W_upᵀ)) · W_downᵀ     LLaMA's, with silu: SwiGLU
//   plain:  y = act(x·W_upᵀ + b_up) · W_downᵀ + b_down     GPT-2's, with gelu_tanh
//
// The dot in the middle of the first line multiplies element by element. Shazeer 2020, "GLU
// Variants Improve Transformer"; plain: Vaswani et al. 2017. The norm before it and the residual
// connection around it are chapter 08's, which puts one such network into each block; chapter 14
// puts many.
#pragma once

#include "07_swiglu/activations.hpp"
#include "tensor.hpp"

namespace t2t {

/// The gated network. Returns y, [T, C]. Throws std::invalid_argument when F is 0, when a matrix
/// has another shape, naming it and both shapes, and unless the activation has a gate.
Tensor<2> gated_network(const Tensor<2>& x,       // [T, C]
                        const Tensor<2>& w_gate,  // [F, C]
                        const Tensor<2>& w_up,    // [F, C]
                        const Tensor<2>& w_down,  // [C, F]
                        Activation activation);

/// The plain network. An empty bias adds nothing. Returns y, [T, C]. Throws as gated_network does,
/// and unless the activation has no gate.
Tensor<2> plain_network(const Tensor<2>& x,       // [T, C]
                        const Tensor<2>& w_up,    // [F, C]
                        const Tensor<1>& b_up,    // [F] or empty
                        const Tensor<2>& w_down,  // [C, F]
                        const Tensor<1>& b_down,  // [C] or empty
                        Activation activation);

/// The F at which three matrices have as many weights as two of width 4C: 8C/3, rounded down to
/// an integer and then up to a multiple of `multiple`, as LLaMA does it: 4096 gives 11008.
/// Throws std::invalid_argument when C or multiple is 0.
std::size_t gated_width(std::size_t C, std::size_t multiple = 256);

}  // namespace t2t
