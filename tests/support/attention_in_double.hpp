// Attention in float64, as its definition says it: two passes over each row of scores. What a query
// sees is told by its position and the key's alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "04_causal_attention/fast/score_rule.hpp"

namespace t2t {

/// The windows that a test of T queries, the last of S positions, tries: one key, a few, some that
/// end inside a block or a register, all but one, all, and more than there are. 0 is no window.
inline std::vector<std::size_t> windows_of(std::size_t S) {
  return {0, 1, 2, 5, 16, 63, 64, 65, std::max<std::size_t>(S, 2) - 1, S, S + 7};
}

/// Rules that other models have: another factor, a cap, and both with a window.
inline std::vector<ScoreRule> other_rules() {
  return {{Mask::causal, 0.8f}, {Mask::causal, 0, 2}, {Mask::sliding(9), 1.5f, 3}};
}

/// Whether a query at this position sees key s.
inline bool sees(std::size_t position, std::size_t s, Mask mask) {
  if (!mask.is_causal) return true;
  return s <= position && (mask.window == 0 || position < s + mask.window);
}

/// All heads of q [T, H·D] against k and v [S, G·D]; the queries are the last of the positions.
inline Tensor<2> attention_in_double(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                     std::size_t H, std::size_t G, const ScoreRule& rule) {
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1) / H;
  Tensor<2> out = empty(T, H * D);
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t g = h / (H / G);
      std::vector<double> weights(S, -INFINITY), mean(D);
      for (std::size_t s = 0; s < S; ++s) {
        if (!sees(S - T + t, s, rule.mask)) continue;
        double score = 0;
        for (std::size_t d = 0; d < D; ++d) score += double(q(t, h * D + d)) * k(s, g * D + d);
        score *= rule.factor > 0 ? double(rule.factor) : 1 / std::sqrt(double(D));
        weights[s] = rule.cap > 0 ? rule.cap * std::tanh(score / double(rule.cap)) : score;
      }
      const double highest = *std::ranges::max_element(weights);
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - highest);
      for (std::size_t s = 0; s < S; ++s)
        for (std::size_t d = 0; d < D; ++d) mean[d] += weights[s] / sum * v(s, g * D + d);
      for (std::size_t d = 0; d < D; ++d) out(t, h * D + d) = float(mean[d]);
    }
  return out;
}

}  // namespace t2t
