// A whole step forward and backward: the loss of a batch of sequences, and its gradients with
// respect to all of a model's weights.
//
//   ids → embedding → blocks, each saving what it needs → norm → head → loss
//       ←           ← blocks, in the opposite order      ←      ←      ← 1
//
// The gradients are stored in tensors of the weights' own shapes, a ModelWeights. The logits of all
// tokens would be the largest tensor of a step, [N, V], so the head processes some rows at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "13_training/backward/passes.hpp"

namespace t2t {

/// Tensors of 0 in the shapes of a model's weights: gradients, or an optimizer's running means.
/// With `learned`, matrices and tables for which it returns false stay empty.
ModelWeights zeros_of(const Config& config,
                      const std::function<bool(const TensorInfo&)>& learned = {});

/// What forward and backward passes of B sequences of T tokens work in: made once, used in each
/// step.
class Gradients {
 public:
  /// Throws as Passes does.
  Gradients(const Config& config, std::size_t B, std::size_t T, TrainingFunctions functions = {});

  /// Adds the gradients of scale · Σ loss to `gradients`, and returns Σ loss over the batch's
  /// targets that are to be learned, in nats. A matrix or table that is empty in `gradients` is not
  /// learned, and its gradient is not computed. The model's weights must be floats. Allocates
  /// nothing, unless dropout drops attention's weights. Throws std::invalid_argument for a batch of
  /// other B or T, an id or a target outside [0, V), packed weights, a share of dropout outside
  /// [0, 1), and for gradients of other shapes than the weights.
  double add(const Model& model, const Batch& batch, float scale, ModelWeights& gradients,
             const Dropout& dropout = {});
  /// Σ loss alone, without gradients and without dropout.
  double loss(const Model& model, const Batch& batch);

  /// What the caller's networks returned in the last call of add, summed over the layers.
  double extra_loss() const { return extra_loss_; }

  /// Bytes of what the forward pass saves, and of the scratch memory beside it.
  std::size_t kept_bytes() const { return bytes(kept_); }
  std::size_t scratch_bytes() const { return passes_.scratch_bytes(); }

 private:
  void expect_model(const Model& model) const;
  /// Leaves the last block's result in the passes' x.
  void forward(const Model& model, const Batch& batch, bool keep, const Dropout& dropout);

  std::size_t B_, T_;
  Config config_;
  Passes passes_;
  std::vector<KeptBlock> kept_;  // [L]
  double extra_loss_ = 0;
};

}  // namespace t2t
