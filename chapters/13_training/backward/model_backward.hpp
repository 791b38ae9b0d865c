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
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "13_training/attention/batch_attention.hpp"
#include "13_training/backward/block_backward.hpp"
#include "13_training/backward/cross_entropy.hpp"

namespace t2t {

/// B sequences of T tokens, one after the other, and for each token the next one.
struct Batch {
  std::size_t B, T;
  std::vector<int> ids;      // [B·T]
  std::vector<int> targets;  // [B·T], some may be not_learned
};
/// Room for B sequences, of zeros.
Batch make_batch(std::size_t B, std::size_t T);

/// Tensors of 0 in the shapes of a model's weights: gradients, or an optimizer's running means.
/// With `learned`, matrices and tables for which it returns false stay empty.
ModelWeights zeros_of(const Config& config,
                      const std::function<bool(const TensorInfo&)>& learned = {});

/// What forward and backward passes of B sequences of T tokens work in: made once, used in each
/// step.
class Gradients {
 public:
  /// Throws std::invalid_argument when B or T is 0 or T is above T_max, and as expect_config and
  /// BackwardScratch do; std::runtime_error when there is not enough free memory.
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
  std::size_t scratch_bytes() const;

 private:
  void expect_batch(const Model& model, const Batch& batch) const;
  void forward(const Model& model, const Batch& batch, const Dropout& dropout, const Trace& trace);
  double head(const Model& model, const Batch& batch, float scale, ModelWeights* gradients);

  std::size_t B_, T_;
  TrainingFunctions functions_;
  double extra_loss_ = 0;
  Tensor<2> x_;       // [N, C], the residual stream
  Tensor<2> dx_;      // [N, C], its gradient
  Tensor<2> logits_;  // [some rows, V]
  std::vector<double> losses_;
  std::vector<Run> runs_;  // [B], of T tokens each
  BatchAttention attention_;
  std::vector<KeptBlock> kept_;
  BlockScratch forward_scratch_;
  BackwardScratch backward_scratch_;
  std::vector<RopeTable> backward_tables_;  // [L]
};

}  // namespace t2t
