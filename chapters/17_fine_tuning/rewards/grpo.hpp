// Group relative policy optimization (GRPO): a model answers a question several times, and learns
// more of the answers that were rewarded above their group's mean, less of the others.
//
//   A = r − mean of the group's r                 the advantage, the same for all tokens of an
//   answer ρ = p / p_old                                 of a token: now, and when the answer was
//   drawn weight = (ρ·A, or 0 where clipped, − κ·x)·n   x = ln p − ln p_ref
//
// The first term is the gradient of min(ρ·A, clip(ρ, 1 − ε, 1 + ε)·A), which no longer rewards a
// token that has already moved by ε in its advantage's direction. The second keeps the model near a
// fixed reference (kl.hpp). n divides the sum over tokens in one of three ways.
// Shao et al. 2024, "DeepSeekMath"; clipping: Schulman et al. 2017, "Proximal Policy Optimization";
// Yu et al. 2025, "DAPO"; Liu et al. 2025, "Understanding R1-Zero-Like Training" (Dr. GRPO).
#pragma once

#include <span>
#include <vector>

#include "13_training/backward/passes.hpp"

namespace t2t {

/// Rewards minus their group's mean: [answers], of which each `group` neighbours answer one
/// question. With by_deviation, as in the first paper, they are also divided by the group's
/// standard deviation plus 1e-4. Throws std::invalid_argument unless group is at least 2 and
/// divides the number of rewards, and for a reward that is not finite.
std::vector<double> group_advantages(std::span<const double> rewards, std::size_t group,
                                     bool by_deviation = false);

/// The share of groups whose rewards are all equal: their advantages are 0, and they teach nothing.
/// Throws as group_advantages does.
double equal_groups(std::span<const double> rewards, std::size_t group);

/// The derivative of min(ρ·A, clip(ρ, 1 − ε, 1 + ε)·A) with respect to ln p: ρ·A, or 0 if A is
/// positive and ρ above 1 + ε, or A is negative and ρ below 1 − ε.
double clipped_weight(double ratio, double advantage, double epsilon);

/// By what the sum over all tokens of a batch of answers is divided.
enum class TokenShare {
  own_length,  // GRPO: the number of answers, and each answer by its own number of tokens
  all_tokens,  // DAPO: the number of tokens of all answers
  constant,    // Dr. GRPO: the number of answers, times the most tokens that an answer may have
};

struct GrpoOptions {
  std::size_t group = 8;  // answers to each question
  double epsilon = 0.2;   // of the clipping
  double kappa = 0;       // how strongly the reference holds the model
  TokenShare share = TokenShare::constant;
  std::size_t most = 1;       // tokens of an answer, for TokenShare::constant
  bool by_deviation = false;  // see group_advantages
};

/// What is known of a batch's answers, before the step that the weights are for.
struct ScoredAnswers {
  std::span<const double> rewards;    // [B]
  std::span<const double> log_p;      // [B·T], now
  std::span<const double> log_p_old;  // [B·T], when the answers were drawn
  std::span<const double> log_p_ref;  // [B·T], of the reference; empty if kappa is 0
};

/// Writes the weight of each token of a batch of B answers. Targets that are not learned get the
/// weight 0. Returns the share of learned tokens that are clipped. Throws std::invalid_argument as
/// group_advantages does, when sizes differ, without a learned target, unless epsilon is in (0, 1),
/// kappa at least 0 and most at least 1, and for an answer of more than `most` tokens.
double grpo_weights(const Batch& batch, const ScoredAnswers& answers, const GrpoOptions& options,
                    Row weights);  // [B·T], written

}  // namespace t2t
