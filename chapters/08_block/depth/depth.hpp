// Many layers on top of each other: how large the stream grows, how alike its tokens become, and
// how much of a gradient arrives at the bottom. Only this chapter's program uses it; chapter 09
// stacks a model's blocks.
//
// The gradient's size is measured without a backward pass. Let J be the Jacobian of the stack, the
// derivative of its output with respect to its input. A gradient g at the output arrives at the
// input as Jᵀg, a change v of the input arrives at the output as Jv. If the elements of g and v are
// drawn independently from N(0, 1), E|Jv|² = E|Jᵀg|² = Σ J_ij². Random changes are therefore sent
// up, through one layer after the other; each layer's derivative is computed by finite differences.
#pragma once

#include <vector>

#include "08_block/fast/cached_attention.hpp"

namespace t2t {

/// How a layer's sublayers are connected. Real models use only the first two; the others omit the
/// residual connections, the norms, or both.
enum class StackVariant { pre_norm, post_norm, norms_only, residuals_only, neither };

/// What is measured after some layer of a stack.
struct StackMeasures {
  double size;  // rms, the root mean square, of the stream
  /// Share of it that differs from token to token: 0 when all tokens are equal (rank collapse in
  /// the literature).
  double spread;
  double gradient;  // rms of the gradient at the input if the gradient at the output has rms 1
  /// The part of the gradient that bypasses all matrices: it passes only residual connections and
  /// the norms' divisions.
  double direct_gradient;
};

/// Sends the input, and small changes to it, through layers connected in this way. Element l is
/// measured after l layers. In a stack with norms its gradients are measured after a final norm of
/// gain 1, as at the end of a model, so they pass that norm too. settings are those of every layer;
/// variant decides the norm's place.
/// Throws std::invalid_argument as Block and block_rows do, and when `changes` is empty.
std::vector<StackMeasures> measure_stack(StackVariant variant,
                                         const Tensor<2>& input,  // [T, C]
                                         const BlockSettings& settings,
                                         const std::vector<BlockWeights>& layers,
                                         std::vector<Tensor<2>> changes);  // [T, C] each

}  // namespace t2t
