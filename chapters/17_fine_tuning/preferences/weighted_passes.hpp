// Forward and backward passes of a whole model with a weight for each token.
//
//   log_p      forward                    ln p of each target: what DPO and GRPO compute weights
//   from add        forward and backward       the gradients of Σ weight·(−ln p)
#pragma once

#include <vector>

#include "13_training/backward/model_backward.hpp"
#include "17_fine_tuning/preferences/batch_loss.hpp"

namespace t2t {

class WeightedPasses {
 public:
  /// For B sequences of T tokens. Throws as Gradients does.
  WeightedPasses(const Config& config, std::size_t B, std::size_t T);

  /// ln p of each target, and 0 for targets that are not learned: [B·T], valid until the next call.
  /// Throws as Gradients::loss does.
  const std::vector<double>& log_p(const Model& model, const Batch& batch);

  /// Adds the gradients of Σ weight·(−ln p) to `gradients`, and returns that sum, in nats. Throws
  /// as Gradients::add and weighted_loss_rows do.
  double add(const Model& model, const Batch& batch,
             ConstRow weights,  // [B·T]
             ModelWeights& gradients);

 private:
  BatchLoss loss_;
  Gradients passes_;
};

}  // namespace t2t
