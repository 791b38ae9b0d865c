#include "20_split_models/tensor_parallel/split_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "13_training/backward/cross_entropy.hpp"
#include "19_ranks/collectives/range.hpp"
#include "19_ranks/counting/costs.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// The numbers of all ranks, [ranks, n], given the own n.
static Tensor<2> gathered(const ShardGroup& ranks, ConstRow own) {
  Tensor<2> all = xt::zeros<float>({ranks.size, own.size()});
  std::ranges::copy(own, row(all, ranks.rank).begin());
  ranks.gather({all.data(), all.size()});
  return all;
}

static void expect_targets(std::span<const int> targets, std::size_t V) {
  for (std::size_t t = 0; t < targets.size(); ++t)
    if (targets[t] != not_learned && (targets[t] < 0 || std::size_t(targets[t]) >= V))
      throw std::invalid_argument(
          fmt::format("targets: token {} is {}, wanted one in [0, {})", t, targets[t], V));
}

/// The largest logit of each token, of all ranks' tokens.
static std::vector<float> largest_logits(const ShardGroup& ranks, ConstMatrix logits) {
  std::vector<float> own(logits.rows);
  for (std::size_t t = 0; t < logits.rows; ++t) own[t] = max_row(logits.row(t));
  const Tensor<2> all = gathered(ranks, own);
  for (std::size_t r = 0; r < ranks.size; ++r)
    for (std::size_t t = 0; t < own.size(); ++t) own[t] = std::max(own[t], all(r, t));
  return own;
}

double split_cross_entropy_rows(const ShardGroup& ranks, std::size_t V, Matrix logits,
                                std::span<const int> targets, float scale) {
  const Range tokens = range_of(V, ranks.size, ranks.rank);
  const std::size_t T = logits.rows;
  expect_shape("logits", logits, {targets.size(), tokens.size()});
  expect_targets(targets, V);
  const auto is_own = [&](int target) {
    return target >= int(tokens.begin) && target < int(tokens.end);
  };
  const std::vector<float> largest = largest_logits(ranks, logits);

  // This rank's sum of exponentials of each token, and the target's logit if it is here.
  std::vector<float> own(2 * T, 0.0f);
  for (std::size_t t = 0; t < T; ++t)
    if (is_own(targets[t])) own[T + t] = logits.row(t)[std::size_t(targets[t]) - tokens.begin];
  for_each_row(T, logits.cols,
               [&](std::size_t t) { own[t] = exp_and_sum(logits.row(t), 1, largest[t]); });
  const Tensor<2> all = gathered(ranks, own);

  double losses = 0;
  for (std::size_t t = 0; t < T; ++t) {
    if (targets[t] == not_learned) {
      std::ranges::fill(logits.row(t), 0.0f);
      continue;
    }
    float sum = 0, at_target = 0;
    for (std::size_t r = 0; r < ranks.size; ++r) sum += all(r, t), at_target += all(r, T + t);
    const float factor = scale / sum;
    for (float& x : logits.row(t)) x *= factor;
    if (is_own(targets[t])) logits.row(t)[std::size_t(targets[t]) - tokens.begin] -= scale;
    losses += std::log(double(sum)) + double(largest[t]) - double(at_target);
  }
  return losses;
}

Sent split_cross_entropy_cost(std::size_t T, std::size_t ranks, std::size_t rank) {
  return ring_all_gather_cost(ranks * T, ranks, rank) +
         ring_all_gather_cost(2 * ranks * T, ranks, rank);
}

}  // namespace t2t
