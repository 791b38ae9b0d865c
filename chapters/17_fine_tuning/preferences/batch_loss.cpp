#include "17_fine_tuning/preferences/batch_loss.hpp"

#include <algorithm>
#include <functional>

#include "17_fine_tuning/preferences/weighted_loss.hpp"
#include "shapes.hpp"

namespace t2t {

BatchLoss::BatchLoss(std::size_t tokens) : losses_(tokens), log_p_(tokens) {}

TrainingFunctions BatchLoss::functions() {
  TrainingFunctions functions;
  functions.loss = [this](Matrix logits, std::span<const int> targets, float) {
    return of_rows(logits, targets);
  };
  return functions;
}

void BatchLoss::begin(const Batch& batch) { batch_ = &batch, weights_ = {}; }

void BatchLoss::begin(const Batch& batch, ConstRow weights) {
  expect(weights.size() == losses_.size(), "weights", "one for each of the batch's tokens",
         weights.size());
  batch_ = &batch, weights_ = weights;
}

double BatchLoss::of_rows(Matrix logits, std::span<const int> targets) {
  // The targets are views of the batch's own: their address says which rows these are.
  const std::size_t first = std::size_t(targets.data() - batch_->targets.data());
  const std::span losses = std::span(losses_).subspan(first, targets.size());
  if (weights_.empty()) return cross_entropy_rows(logits, targets, 1, losses);
  return weighted_loss_rows(logits, targets, weights_.subspan(first, targets.size()), losses);
}

const std::vector<double>& BatchLoss::log_p() {
  std::ranges::transform(losses_, log_p_.begin(), std::negate<>());
  return log_p_;
}

}  // namespace t2t
