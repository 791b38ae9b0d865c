// Many layers on top of each other: how large the stream grows, how alike its tokens become, and
// how much of a gradient arrives at the bottom. For the show; chapter 09 stacks a model's blocks.
//
// The gradient's size is measured without a backward pass. Let J be the Jacobian of the stack, the
// derivative of its output with respect to its input. A gradient g at the output arrives at the
// input as Jᵀg, a change v of the input arrives at the output as Jv. For g and v of independent
// numbers from N(0, 1), E|Jv|² = E|Jᵀg|² = Σ J_ij². Random changes are therefore sent up, through
// one layer after the other; each layer's derivative is computed by finite differences.
#pragma once

#include <vector>

#include "08_block/fast/cached_attention.hpp"

namespace t2t {

/// How the sublayers of a layer are joined. Only the first two are in use; the others leave out the
/// sums, the norms, or both.
enum class Joined { pre_norm, post_norm, norms_only, sums_only, neither };

/// What is measured after some layer of a stack.
struct Depth {
  double size;      // root mean square of the stream
  double spread;    // share of it that differs from token to token: 0 when all tokens are equal
  double arrives;   // root mean square of the gradient at the text, for one of 1 at the output
  double straight;  // what of the gradient comes through the sums and the norms' division alone
};

/// Runs text through layers so joined, and changes of the text with it. Index l: after l layers; a
/// stack with norms ends there with one last norm of gain 1, as a model does, through which the
/// gradient has to come. settings are those of every layer; joined decides the norm's place.
/// Throws std::invalid_argument as Block and block_rows do, and when there is no change.
std::vector<Depth> depths(Joined joined,
                          const Tensor<2>& text,  // [T, C]
                          const BlockSettings& settings, const std::vector<BlockWeights>& layers,
                          std::vector<Tensor<2>> changes);  // [T, C] each

}  // namespace t2t
