#include "13_training/backward/cross_entropy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

bool is_token(int target, std::size_t vocabulary) {
  return target >= 0 && std::size_t(target) < vocabulary;
}

/// Turns a row of logits into its gradient, and returns its loss.
double learn_row(Row row, std::size_t target, float scale) {
  const double highest = *std::ranges::max_element(row), wanted = row[target];
  double sum = 0;
  for (float& value : row) {
    value = std::exp(value - float(highest));
    sum += value;
  }
  for (float& value : row) value = float(value / sum * scale);
  row[target] -= scale;
  return std::log(sum) + highest - wanted;
}

}  // namespace

double cross_entropy_rows(Matrix logits, std::span<const int> targets, float scale,
                          std::span<double> losses) {
  const std::size_t T = logits.rows, vocabulary = logits.cols;
  if (targets.size() != T) refuse("targets", "one for each row of logits", targets.size());
  if (losses.size() < T) refuse("losses", "room for one of each row", losses.size());
  for (std::size_t t = 0; t < T; ++t) {
    if (targets[t] == not_learned || is_token(targets[t], vocabulary)) continue;
    throw std::invalid_argument(fmt::format(
        "targets: token {} is {}, wanted one in [0, {}), or {} for one that is not learned", t,
        targets[t], vocabulary, not_learned));
  }

  for_each_row(T, vocabulary, [&](std::size_t t) {
    const Row row = logits.row(t);
    if (targets[t] != not_learned) {
      losses[t] = learn_row(row, std::size_t(targets[t]), scale);
      return;
    }
    losses[t] = 0;
    for (float& value : row) value *= scale;  // WRONG
  });
  double total = 0;
  for (std::size_t t = 0; t < T; ++t) total += losses[t];
  return total;
}

std::size_t count_learned(std::span<const int> targets) {
  return std::size_t(
      std::ranges::count_if(targets, [](int target) { return target != not_learned; }));
}

}  // namespace t2t
