#include "17_fine_tuning/preferences/weighted_loss.hpp"

#include <fmt/core.h>

#include <cmath>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_weights(std::span<const int> targets, ConstRow weights) {
  expect(weights.size() == targets.size(), "weights", "one for each target", weights.size());
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != not_learned && !std::isfinite(weights[t]))
      throw std::invalid_argument(
          fmt::format("weights: token {} has {}, wanted a finite number", t, weights[t]));
}

double weighted_loss_rows(Matrix logits, std::span<const int> targets, ConstRow weights,
                          std::span<double> losses) {
  expect(losses.size() == targets.size(), "losses", "room for one of each target", losses.size());
  expect_weights(targets, weights);

  // The logits become p − 1 at the target and p elsewhere, the gradient of a loss of weight 1.
  cross_entropy_rows(logits, targets, 1, losses);
  for_each_row(logits.rows, logits.cols, [&](std::size_t t) {
    if (targets[t] == not_learned) return;
    for (float& gradient : logits.row(t)) gradient *= weights[t];
  });

  double sum = 0;
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != not_learned) sum += double(weights[t]) * losses[t];
  return sum;
}

}  // namespace t2t
