// The backward pass of a block: chapter 08's steps in the opposite order.
//
//   pre-norm    x₁ = x + attention(norm(x))        x₂ = x₁ + network(norm(x₁))
//
//   dx₁ = dx₂ + norm's and network's backward pass of dx₂
//   dx  = dx₁ + norm's and attention's backward pass of dx₁
//
// A sum gives its gradient to both of its terms unchanged. The gradient of the last block's output
// therefore arrives at the first block whole, and each sublayer only adds to it: the purpose of
// residual connections (chapter 08 measures it). He et al. 2015, "Deep Residual Learning".
#pragma once

#include "08_block/differences/differences.hpp"
#include "08_block/fast/block_rows.hpp"
#include "13_training/attention/dropout.hpp"
#include "13_training/attention/flash_backward.hpp"
#include "13_training/backward/kept_for_backward.hpp"
#include "13_training/backward/training_functions.hpp"

namespace t2t {

/// Throws std::invalid_argument for a difference that has no backward pass here: experts, unless
/// the caller's functions compute them.
void expect_trained(const std::vector<Difference>& differences,
                    const TrainingFunctions& functions = {});

/// Memory for the gradients inside a block, used by all layers.
struct BackwardScratch {
  Tensor<2> normed;                // [N, C]    a norm's result, recomputed
  Tensor<2> dnormed;               // [N, C]
  Tensor<2> dropped;               // [N, C]    a sublayer's gradient after dropout
  Tensor<2> dq;                    // [N, H·D]
  Tensor<2> dk;                    // [N, G·D]
  Tensor<2> dv;                    // [N, G·D]
  Tensor<2> dheads;                // [N, H·D]
  Tensor<2> before_norm;           // [N, H·D]  q or k, recomputed, if heads have norms
  Tensor<2> hidden;                // [N, F]    act(gate)·up, recomputed; then dgate
  Tensor<2> dhidden;               // [N, F]    then dup
  Tensor<1> rows;                  // [2·N]     each row's mean and r, for the norms
  FlashBackwardScratch attention;  // not growing with T²

  /// For blocks of these settings, all with the same sizes, and B sequences of T tokens, N = B·T.
  /// Throws std::invalid_argument for no settings, other sizes in two layers, settings that
  /// expect_settings refuses, and as expect_trained does.
  BackwardScratch(std::span<const BlockSettings> layers, std::size_t B, std::size_t T,
                  const TrainingFunctions& functions = {});
};
std::size_t bytes(const BackwardScratch& scratch);

/// dx, the gradient of the block's output, becomes its input's gradient, and the gradients of the
/// block's weights are added to `gradients`. dropout and functions are the forward pass's. Returns
/// the loss of a network that the caller supplies, or 0.
double block_backward(const Block& block, const KeptBlock& kept,
                      const RopeTable& backward_table,  // attention_backward.hpp's; [T, D/2] each
                      std::size_t B,                    // sequences in the N rows
                      BackwardScratch& scratch,
                      Matrix dx,  // [N, C], all of its rows side by side
                      BlockWeights& gradients, const Dropout& dropout = {},
                      const TrainingFunctions& functions = {});

}  // namespace t2t
