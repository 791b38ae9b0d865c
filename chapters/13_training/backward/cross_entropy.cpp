#include "13_training/backward/cross_entropy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_targets(std::span<const int> targets, std::size_t V) {
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != not_learned && (targets[t] < 0 || std::size_t(targets[t]) >= V))
      throw std::invalid_argument(fmt::format(
          "targets: token {} is {}, wanted one in [0, {}), or {} for one that is not learned", t,
          targets[t], V, not_learned));
}

/// One row: the logits become gradients. Returns the loss.
static double cross_entropy_row(Row logits, int target, float scale) {
  const float highest = max_row(logits), at_target = logits[std::size_t(target)];
  const float sum = exp_and_sum(logits, 1, highest);
  const float factor = scale / sum;
  for (float& x : logits) x *= factor;
  logits[std::size_t(target)] -= scale;
  return std::log(double(sum)) + double(highest) - double(at_target);
}

double cross_entropy_rows(Matrix logits, std::span<const int> targets, float scale,
                          std::span<double> losses) {
  const std::size_t T = logits.rows, V = logits.cols;
  expect(targets.size() == T, "targets", "one for each row of logits", targets.size());
  expect(losses.size() >= T, "losses", "room for one of each row", losses.size());
  expect_targets(targets, V);
  for_each_row(T, V, [&](std::size_t t) {
    losses[t] = 0;
    if (targets[t] == not_learned)
      std::ranges::fill(logits.row(t), 0.0f);
    else
      losses[t] = cross_entropy_row(logits.row(t), targets[t], scale);
  });
  return std::accumulate(losses.begin(), losses.begin() + std::ptrdiff_t(T), 0.0);
}

std::size_t count_learned(std::span<const int> targets) {
  return targets.size() - std::size_t(std::ranges::count(targets, not_learned));
}

}  // namespace t2t
