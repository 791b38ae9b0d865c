// The loss of a batch whose tokens have weights, as chapter 13's passes ask for it: they compute
// the head's logits some rows at a time, and hand them to a function that they are given. The
// function needs the rows' place in the batch to find their weights.
#pragma once

#include <span>
#include <vector>

#include "13_training/backward/passes.hpp"

namespace t2t {

class BatchLoss {
 public:
  explicit BatchLoss(std::size_t tokens);  // B·T of the batches
  BatchLoss(const BatchLoss&) = delete;    // its functions hold a pointer to this object

  /// For the passes, whose loss is then Σ weight·(−ln p).
  TrainingFunctions functions();

  /// What the next pass is about, whose batch and weights must outlive it. Without weights each of
  /// them is 1. Throws std::invalid_argument unless there are B·T weights.
  void begin(const Batch& batch);
  void begin(const Batch& batch, ConstRow weights);  // [B·T]

  /// ln p of each target in the last pass, and 0 for targets that are not learned: [B·T], valid
  /// until the next pass.
  const std::vector<double>& log_p();

 private:
  /// The loss of some neighbouring rows of the batch, whose targets are part of the batch's.
  double of_rows(Matrix logits, std::span<const int> targets);

  const Batch* batch_ = nullptr;
  ConstRow weights_;            // [B·T], or empty
  std::vector<double> losses_;  // [B·T], −ln p
  std::vector<double> log_p_;   // [B·T]
};

}  // namespace t2t
