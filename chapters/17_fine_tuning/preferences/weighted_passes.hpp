// Forward and backward passes of a whole model with a weight for each token.
//
//   log_p      forward                    ln p of each target: what DPO and GRPO compute weights
//   from add        forward and backward       the gradients of Σ weight·(−ln p)
//
// Chapter 13's passes hand the head's logits to a function that they are given, some rows at a
// time. Here it is weighted_loss_rows, which needs the rows' place in the batch to find their
// weights.
#pragma once

#include <vector>

#include "13_training/backward/model_backward.hpp"

namespace t2t {

class WeightedPasses {
 public:
  /// For B sequences of T tokens. Throws as Gradients does.
  WeightedPasses(const Config& config, std::size_t B, std::size_t T);
  WeightedPasses(const WeightedPasses&) = delete;  // the passes hold a pointer to this object

  /// ln p of each target, and 0 for targets that are not learned: [B·T], valid until the next call.
  /// Throws as Gradients::loss does.
  const std::vector<double>& log_p(const Model& model, const Batch& batch);

  /// Adds the gradients of Σ weight·(−ln p) to `gradients`, and returns that sum, in nats. Throws
  /// as Gradients::add and weighted_loss_rows do.
  double add(const Model& model, const Batch& batch,
             ConstRow weights,  // [B·T]
             ModelWeights& gradients);

 private:
  /// The loss of some neighbouring rows of the batch, whose targets are part of the batch's.
  double loss_of_rows(Matrix logits, std::span<const int> targets);

  const Batch* batch_ = nullptr;  // of the current call
  ConstRow weights_;              // [B·T], or empty while ln p alone is wanted
  std::vector<double> log_p_;     // [B·T]; −ln p while a pass runs
  Gradients passes_;
};

}  // namespace t2t
