// AdamW: how a weight moves once its gradient is known.
//
//   mean   ← β₁·mean + (1 − β₁)·g          square ← β₂·square + (1 − β₂)·g²
//   w      ← w − rate·(mean/(1 − β₁ⁿ) / (√(square/(1 − β₂ⁿ)) + eps) + decay·w)
//
// The running mean smooths the gradients of the last steps, and the root of the running square is
// their usual size: a weight moves by about `rate` per step, whatever the scale of its gradients.
// Both begin at 0; dividing by 1 − βⁿ at step n makes up for it. Kingma and Ba 2014, "Adam". The
// decay shrinks weights directly, and not through the gradient, where the division would undo it:
// Loshchilov and Hutter 2017, "Decoupled Weight Decay Regularization".
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "13_training/trainer/tensor_list.hpp"

namespace t2t {

struct AdamW {
  float beta1 = 0.9f;
  float beta2 = 0.95f;  // 0.999 in the paper, 0.95 in GPT-3 and LLaMA
  float eps = 1e-8f;
  float decay = 0.1f;
};

/// Whether the decay applies: to matrices and tables, not to gains and biases, which are few and
/// have nothing to gain from being small.
bool decays(Role role);

/// What is the same for all tensors of a step.
struct AdamWStep {
  AdamW options;
  float rate;
  std::size_t n;             // the step, from 1
  float gradient_scale = 1;  // multiplies each gradient when it is read: clipping
};
/// Moves one tensor's weights. Returns the sum of the squares of all moves, the same for any number
/// of threads. Allocates nothing. The decay is the options', or 0 for a tensor that does not decay.
/// Throws std::invalid_argument when sizes differ, n is 0 or scratch has fewer elements than
/// adamw_pieces(size).
double adamw_step(const AdamWStep& step, float decay,
                  Row w,                       // [size]
                  ConstRow g,                  // [size]
                  Row mean,                    // [size]
                  Row square,                  // [size]
                  std::span<double> scratch);  // [adamw_pieces(size)]
std::size_t adamw_pieces(std::size_t size);

/// The Euclidean norm of all gradients together: √(Σ g²). The same for any number of threads, and
/// nothing is allocated.
double gradient_norm(const std::vector<ListedTensor>& gradients);

/// The factor that brings gradients of this norm down to `max_norm`: 1 when they are below it. All
/// tensors are scaled alike, so that the step keeps its direction. Pascanu et al. 2012, "On the
/// difficulty of training Recurrent Neural Networks". `max_norm` of 0 never clips.
float clip_factor(double norm, double max_norm);

/// The name of the first tensor with an element that is not finite, or an empty string.
std::string first_not_finite(const std::vector<ListedTensor>& tensors);

}  // namespace t2t
