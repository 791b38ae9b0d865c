#include "17_fine_tuning/preferences/dpo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shapes.hpp"

namespace t2t {

std::vector<double> answer_log_p(const Batch& batch, std::span<const double> log_p) {
  expect(log_p.size() == batch.targets.size(), "ln p", "one for each of the batch's tokens",
         log_p.size());
  std::vector<double> sums(batch.B);
  for (std::size_t i = 0; i < log_p.size(); ++i)
    if (batch.targets[i] != not_learned) sums[i / batch.T] += log_p[i];
  return sums;
}

double dpo_z(const AnswerPair& model, const AnswerPair& reference, double beta) {
  return beta * ((model.chosen - reference.chosen) - (model.rejected - reference.rejected));
}

double dpo_loss(double z) { return std::log1p(std::exp(-std::abs(z))) + std::max(-z, 0.0); }

double dpo_pull(double z) { return 1 / (1 + std::exp(z)); }

static void expect_pairs(const Batch& batch, std::span<const double> model,
                         std::span<const double> reference, const DpoOptions& options,
                         ConstRow weights) {
  expect(batch.B % 2 == 0, "B, a chosen and a rejected answer of each pair", "an even number",
         batch.B);
  expect(model.size() == batch.B, "the model's ln p of answers", "one for each sequence",
         model.size());
  expect(reference.size() == batch.B, "the reference's ln p of answers", "one for each sequence",
         reference.size());
  expect(weights.size() == batch.targets.size(), "weights", "one for each of the batch's tokens",
         weights.size());
  expect(std::isfinite(options.beta) && options.beta > 0, "beta", "a number above 0", options.beta);
  expect(std::isfinite(options.sft) && options.sft >= 0, "sft, the share of the chosen's loss",
         "a number of at least 0", options.sft);
}

/// All learned targets of sequence b get the same weight.
static void set_weights(const Batch& batch, std::size_t b, double weight, Row weights) {
  for (std::size_t i = b * batch.T; i < (b + 1) * batch.T; ++i)
    weights[i] = batch.targets[i] == not_learned ? 0 : float(weight);
}

DpoReport dpo_weights(const Batch& batch, std::span<const double> model,
                      std::span<const double> reference, const DpoOptions& options, Row weights) {
  expect_pairs(batch, model, reference, options, weights);
  const std::size_t pairs = batch.B / 2;
  const double share = 1 / double(pairs);
  DpoReport report{};
  for (std::size_t i = 0; i < pairs; ++i) {
    const AnswerPair ours{model[i], model[pairs + i]}, theirs{reference[i], reference[pairs + i]};
    const double z = dpo_z(ours, theirs, options.beta), pull = options.beta * dpo_pull(z);
    set_weights(batch, i, share * (pull + options.sft), weights);
    set_weights(batch, pairs + i, -share * pull, weights);

    report.loss += share * (dpo_loss(z) - options.sft * ours.chosen);
    report.in_order += share * (z > 0);
    report.chosen += share * (ours.chosen - theirs.chosen);
    report.rejected += share * (ours.rejected - theirs.rejected);
  }
  return report;
}

}  // namespace t2t
