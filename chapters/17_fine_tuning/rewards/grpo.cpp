#include "17_fine_tuning/rewards/grpo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "17_fine_tuning/rewards/kl.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_groups(std::span<const double> rewards, std::size_t group) {
  expect(group >= 2, "group, the answers to a question", "at least 2", group);
  expect(!rewards.empty() && rewards.size() % group == 0, "rewards",
         fmt::format("a multiple of {}, the group", group), rewards.size());
  for (std::size_t i = 0; i < rewards.size(); ++i)
    if (!std::isfinite(rewards[i]))
      throw std::invalid_argument(
          fmt::format("rewards: answer {} has {}, wanted a finite number", i, rewards[i]));
}

static double mean_of(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size());
}

std::vector<double> group_advantages(std::span<const double> rewards, std::size_t group,
                                     bool by_deviation) {
  expect_groups(rewards, group);
  std::vector<double> advantages(rewards.size());
  for (std::size_t first = 0; first < rewards.size(); first += group) {
    const std::span own = rewards.subspan(first, group);
    const double mean = mean_of(own);
    double squares = 0;
    for (const double reward : own) squares += (reward - mean) * (reward - mean);
    const double deviation = std::sqrt(squares / double(group));
    for (std::size_t i = 0; i < group; ++i)
      advantages[first + i] = (own[i] - mean) / (by_deviation ? deviation + 1e-4 : 1);
  }
  return advantages;
}

double equal_groups(std::span<const double> rewards, std::size_t group) {
  expect_groups(rewards, group);
  std::size_t equal = 0;
  for (std::size_t first = 0; first < rewards.size(); first += group) {
    const auto [least, most] = std::ranges::minmax(rewards.subspan(first, group));
    equal += least == most;
  }
  return double(equal) / double(rewards.size() / group);
}

double clipped_weight(double ratio, double advantage, double epsilon) {
  const bool moved_enough = advantage > 0 ? ratio > 1 + epsilon : ratio < 1 - epsilon;
  return moved_enough ? 0 : ratio * advantage;
}

static void expect_answers(const Batch& batch, const ScoredAnswers& answers,
                           const GrpoOptions& options, ConstRow weights) {
  const std::size_t N = batch.targets.size();
  const bool held = options.kappa > 0;
  expect(std::isfinite(options.epsilon) && options.epsilon > 0 && options.epsilon < 1, "epsilon",
         "above 0 and below 1", options.epsilon);
  expect(std::isfinite(options.kappa) && options.kappa >= 0, "kappa", "a number of at least 0",
         options.kappa);
  expect(options.most >= 1, "most, the tokens of an answer", "at least 1", options.most);
  expect(answers.rewards.size() == batch.B, "rewards", "one for each sequence",
         answers.rewards.size());
  expect(answers.log_p.size() == N, "ln p", "one for each of the batch's tokens",
         answers.log_p.size());
  expect(answers.log_p_old.size() == N, "the old ln p", "one for each of the batch's tokens",
         answers.log_p_old.size());
  expect(answers.log_p_ref.size() == (held ? N : answers.log_p_ref.size()), "the reference's ln p",
         "one for each of the batch's tokens", answers.log_p_ref.size());
  expect(weights.size() == N, "weights", "one for each of the batch's tokens", weights.size());
}

/// n for the answers of a batch: [B].
static std::vector<double> shares_of(const Batch& batch, const GrpoOptions& options) {
  const double answers = double(batch.B), all = double(count_learned(batch.targets));
  expect(all > 0, "targets that are to be learned", "at least 1", all);
  std::vector<double> shares(batch.B);
  for (std::size_t b = 0; b < batch.B; ++b) {
    const std::size_t length =
        count_learned(std::span(batch.targets).subspan(b * batch.T, batch.T));
    expect(options.share != TokenShare::constant || length <= options.most, "tokens of an answer",
           fmt::format("at most {}", options.most), length);
    switch (options.share) {
      case TokenShare::own_length:
        shares[b] = length > 0 ? 1 / (answers * double(length)) : 0;
        break;
      case TokenShare::all_tokens:
        shares[b] = 1 / all;
        break;
      case TokenShare::constant:
        shares[b] = 1 / (answers * double(options.most));
        break;
    }
  }
  return shares;
}

double grpo_weights(const Batch& batch, const ScoredAnswers& answers, const GrpoOptions& options,
                    Row weights) {
  expect_answers(batch, answers, options, weights);
  const std::vector<double> advantages =
      group_advantages(answers.rewards, options.group, options.by_deviation);
  const std::vector<double> shares = shares_of(batch, options);
  std::ranges::fill(weights, 0.0f);
  std::size_t clipped = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (batch.targets[i] == not_learned) continue;
    const double advantage = advantages[i / batch.T];
    const double ratio = std::exp(answers.log_p[i] - answers.log_p_old[i]);
    double weight = clipped_weight(ratio, advantage, options.epsilon);
    clipped += advantage != 0 && weight == 0;
    if (options.kappa > 0)
      weight -= options.kappa * kl_k2(answers.log_p[i] - answers.log_p_ref[i]).slope;
    weights[i] = float(weight * shares[i / batch.T]);
  }
  return double(clipped) / double(count_learned(batch.targets));
}

}  // namespace t2t
