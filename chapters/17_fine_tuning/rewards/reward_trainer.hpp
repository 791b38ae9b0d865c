// Learning from rewards: the same step again and again.
//
//   some sums → a group of answers to each, drawn from the model → rewards → advantages
//   → weights → one or several steps on the same answers → the next sums
//
// Each step depends on the model, the optimizer and the number of the step alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "17_fine_tuning/preferences/policy.hpp"
#include "17_fine_tuning/rewards/grpo.hpp"
#include "17_fine_tuning/rewards/sums.hpp"

namespace t2t {

/// What an answer is worth: see right_answer and begins_right.
using SumReward = std::function<double(const Sum& sum, const std::vector<int>& answer)>;

struct RewardOptions {
  std::size_t questions = 32;  // of a step, with grpo.group answers each
  std::size_t passes = 1;      // steps on the same answers
  GrpoOptions grpo = {.group = 16, .most = sum_most};
  StepOptions step = {};
  std::uint64_t seed = 1;  // of the sums' order and of the answers
};

struct RewardReport {
  std::size_t n = 0;         // the step, from 1
  double reward = 0;         // mean over all answers
  double equal = 0;          // share of groups with equal rewards
  double length = 0;         // mean tokens of an answer, its end included
  double clipped = 0;        // share of tokens, in the last pass
  double moved = 0;          // mean of ln p − ln p_ref per token, if there is a reference
  double gradient_norm = 0;  // of the last pass, before clipping
};

class RewardTrainer {
 public:
  /// The sums must outlive it. With kappa above 0, the model as it is now becomes the reference.
  /// Throws as Policy does, and std::invalid_argument when there are no sums or no passes.
  RewardTrainer(Model model, const std::vector<Sum>& sums, SumReward reward,
                const RewardOptions& options);

  /// Draws answers to some sums and learns from them. Throws as grpo_weights and Policy::step_on
  /// do.
  RewardReport step();

  const Model& model() const { return policy_.model(); }

 private:
  /// A frozen model, and the passes that score answers with it.
  struct Reference {
    Model model;
    WeightedPasses passes;

    Reference(const Model& of, std::size_t B);
  };
  std::vector<Sum> next_sums() const;

  RewardOptions options_;
  const std::vector<Sum>& sums_;
  SumReward reward_;
  std::unique_ptr<Reference> reference_;  // if kappa is above 0
  Policy policy_;
  Batch batch_;
  std::size_t steps_done_ = 0;
};

}  // namespace t2t
