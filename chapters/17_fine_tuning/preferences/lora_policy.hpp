// A policy of which only a LoRA adapter learns: for a model with too many weights to train.
#pragma once

#include "17_fine_tuning/lora.hpp"
#include "17_fine_tuning/preferences/batch_loss.hpp"

namespace t2t {

/// It can't be copied or moved.
class LoraPolicy {
 public:
  /// Throws as LoraTrainer does.
  LoraPolicy(Model model, const LoraOptions& options);

  /// One step against the gradient of Σ weight·(−ln p), which is the report's loss. Throws as
  /// BatchLoss::begin, weighted_loss_rows and Optimizer::end_step do.
  StepReport step_on(const Batch& batch,
                     ConstRow weights);  // [B·T]

  const Model& model() const { return trainer_.model(); }
  const LoraTrainer& trainer() const { return trainer_; }

 private:
  BatchLoss loss_;
  LoraTrainer trainer_;
};

}  // namespace t2t
