// A model that learns from weighted tokens, all of its weights: a policy, as reinforcement learning
// calls a model that chooses its next token.
//
//   ln p of a batch's targets → weights, by dpo.hpp or rewards/grpo.hpp → step
#pragma once

#include <vector>

#include "13_training/trainer/optimizer.hpp"
#include "17_fine_tuning/preferences/weighted_passes.hpp"

namespace t2t {

struct PolicyOptions {
  std::size_t B, T;  // sequences of a batch, tokens of a sequence
  StepOptions step = {};
};

/// Its calls allocate nothing. It can't be copied or moved.
class Policy {
 public:
  /// Throws as Gradients and Optimizer do.
  Policy(Model model, const PolicyOptions& options);

  /// As WeightedPasses::log_p: valid until the next call.
  const std::vector<double>& log_p(const Batch& batch) { return passes_.log_p(model_, batch); }

  /// One step against the gradient of Σ weight·(−ln p), which is the report's loss. Throws as
  /// WeightedPasses::add and Optimizer::end_step do; the weights are then as they were.
  StepReport step_on(const Batch& batch,
                     ConstRow weights);  // [B·T]

  const Model& model() const { return model_; }

 private:
  Model model_;
  WeightedPasses passes_;
  ModelWeights gradients_;
  Optimizer optimizer_;
};

/// A step of supervised fine-tuning: each learned target of the batch has the same weight, one over
/// their number. Throws std::invalid_argument when there is none.
StepReport learn_answers(Policy& policy, const Batch& batch);

}  // namespace t2t
