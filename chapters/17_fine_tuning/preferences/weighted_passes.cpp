#include "17_fine_tuning/preferences/weighted_passes.hpp"

#include "17_fine_tuning/preferences/weighted_loss.hpp"
#include "shapes.hpp"

namespace t2t {

static TrainingFunctions with_loss(
    std::function<double(Matrix logits, std::span<const int> targets, float scale)> loss) {
  TrainingFunctions functions;
  functions.loss = std::move(loss);
  return functions;
}

WeightedPasses::WeightedPasses(const Config& config, std::size_t B, std::size_t T)
    : log_p_(B * T),
      passes_(config, B, T, with_loss([this](Matrix logits, std::span<const int> targets, float) {
                return loss_of_rows(logits, targets);
              })) {}

double WeightedPasses::loss_of_rows(Matrix logits, std::span<const int> targets) {
  // The targets are views of the batch's own: their address says which rows these are.
  const std::size_t first = std::size_t(targets.data() - batch_->targets.data());
  const std::span losses = std::span(log_p_).subspan(first, targets.size());
  if (weights_.empty()) return cross_entropy_rows(logits, targets, 1, losses);
  return weighted_loss_rows(logits, targets, weights_.subspan(first, targets.size()), losses);
}

const std::vector<double>& WeightedPasses::log_p(const Model& model, const Batch& batch) {
  batch_ = &batch, weights_ = {};
  passes_.loss(model, batch);
  for (double& loss : log_p_) loss = -loss;
  return log_p_;
}

double WeightedPasses::add(const Model& model, const Batch& batch, ConstRow weights,
                           ModelWeights& gradients) {
  expect(weights.size() == log_p_.size(), "weights", "one for each of the batch's tokens",
         weights.size());
  batch_ = &batch, weights_ = weights;
  return passes_.add(model, batch, 1, gradients);
}

}  // namespace t2t
