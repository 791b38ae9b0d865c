// Attention with sinks in float64, as its definition says it.
#pragma once

#include <cmath>
#include <vector>

#include "13_training/differences.hpp"
#include "support/attention_in_double.hpp"

namespace t2t {

/// All heads of q [T, H·D] against k and v [S, G·D], with a sink a head, [1, H]: [T, H·D].
inline Doubles sinks_in_double(const Doubles& q, const Doubles& k, const Doubles& v,
                               const Doubles& sinks, std::size_t G, Mask mask) {
  const std::size_t T = q.rows, S = k.rows, H = sinks.cols, D = q.cols / H;
  Doubles out(T, q.cols);
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t h = 0; h < H; ++h) {
      const std::size_t g = h / (H / G);
      std::vector<double> exps(S);
      double sum = std::exp(sinks(0, h));
      for (std::size_t s = 0; s < S; ++s) {
        if (!sees(S - T + t, s, mask)) continue;
        double score = 0;
        for (std::size_t d = 0; d < D; ++d) score += q(t, h * D + d) * k(s, g * D + d);
        sum += exps[s] = std::exp(score / std::sqrt(double(D)));
      }
      for (std::size_t s = 0; s < S; ++s)
        for (std::size_t d = 0; d < D; ++d) out(t, h * D + d) += exps[s] / sum * v(s, g * D + d);
    }
  return out;
}

inline Tensor<2> as_floats(const Doubles& x) {
  Tensor<2> floats = empty(x.rows, x.cols);
  for (std::size_t i = 0; i < x.numbers.size(); ++i) floats.data()[i] = float(x.numbers[i]);
  return floats;
}

/// How far attention may be off whose q, k and v lie from −1 to 1. A score is a sum of D products,
/// at most √D in all; a weight is relatively off by twice that, and by the sum of S exponentials.
inline double sink_bound(std::size_t S, std::size_t D) {
  return 2 * rounding(D, std::sqrt(double(D))) + 2 * rounding(S, 1);
}

}  // namespace t2t
