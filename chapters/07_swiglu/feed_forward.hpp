// Feed-forward network: each token's vector alone, C numbers up to F, an activation, down to C.
//
//   gated:  y = (act(x·W_gateᵀ) · (x·W_upᵀ)) · W_downᵀ     LLaMA's, with silu: SwiGLU
//   plain:  y = act(x·W_upᵀ + b_up) · W_downᵀ + b_down     GPT-2's, with gelu_tanh
//
// The dot in the middle of the first line is number by number. Shazeer 2020, "GLU Variants Improve
// Transformer"; plain: Vaswani et al. 2017. No residual and no norm here: chapter 08 puts one of
// these in each block, chapter 14 many of them.
#pragma once

#include <functional>

#include "07_swiglu/activations.hpp"
#include "random.hpp"
#include "tensor.hpp"
#include "weight.hpp"

namespace t2t {

/// What is left unset stays empty: w_gate in a plain network, biases in one that has none.
struct FeedForwardWeights {
  Weight w_gate;     // [F, C], only if gated
  Weight w_up;       // [F, C]
  Weight w_down;     // [C, F]
  Tensor<1> b_up;    // [F] or empty, plain only
  Tensor<1> b_down;  // [C] or empty, plain only
};

/// Drawn from N(0, 1/C), w_down from N(0, 1/F), so that inputs of size about 1 give outputs of
/// size about 1; no biases.
FeedForwardWeights feed_forward_weights(std::size_t C, std::size_t F, Activation activation,
                                        Random& random);

/// Room for what lies between the matrices, for up to T_max tokens at a time and a network of width
/// F or less, whose rows are the first numbers of these; of any contents. One that is gated serves
/// a plain network too. F may be 0: then it serves none.
struct FeedForwardScratch {
  Tensor<2> gate;  // [T_max, F], only if gated
  Tensor<2> up;    // [T_max, F]

  FeedForwardScratch(std::size_t T_max, std::size_t F, Activation activation);
};

/// The formula. Returns y [T, C]. Throws std::invalid_argument, naming the weight and both shapes,
/// when one does not fit, is missing or is not used by this activation; when F is 0 as well.
Tensor<2> feed_forward(const Tensor<2>& x,  // [T, C]
                       const FeedForwardWeights& weights, Activation activation);

/// Who wants to see gate and up, [T, F], before the activation's result takes up's place. Without a
/// gate the first is [0, 0].
using SeeGateAndUp = std::function<void(ConstMatrix gate, ConstMatrix up)>;

/// The same in the scratch's room, with nothing allocated: what the later chapters call. y may be x
/// itself. One token goes through matvec. Throws as feed_forward does, or when the scratch is too
/// small or y is not [T, C].
void feed_forward_rows(ConstMatrix x,  // [T, C]
                       const FeedForwardWeights& weights, Activation activation,
                       FeedForwardScratch& scratch,
                       Matrix y,  // [T, C]
                       const SeeGateAndUp& see = {});

/// The F at which three matrices hold as many numbers as two of width 4C: 8C/3, rounded down, then
/// up to the next multiple, as LLaMA does it: 4096 gives 11008. Throws std::invalid_argument when C
/// or multiple is 0.
std::size_t gated_width(std::size_t C, std::size_t multiple = 256);

/// Numbers in the matrices and biases.
std::size_t parameter_count(const FeedForwardWeights& weights);

}  // namespace t2t
