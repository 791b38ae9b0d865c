// The recurrence in float64, as its formula says it, and inputs that need no file.
#pragma once

#include <algorithm>
#include <cmath>

#include "13_training/differences.hpp"
#include "24_delta_rule/delta_rule.hpp"
#include "support/hashed_numbers.hpp"

namespace t2t {

/// Keys of length 1, queries of length 1/√D, β between 0 and 1, and g between −2·decay and 0.
inline DeltaTokens made_tokens(std::size_t T, std::size_t D, std::size_t Dv, float decay = 0.2f) {
  return {unit_rows(numbers(1, 2, 0, T, D)) / std::sqrt(float(D)),
          unit_rows(numbers(2, 2, 0, T, D), 1e-12f), numbers(3, 2, 0, T, Dv),
          numbers(4, 2 * decay, -decay, T), numbers(5, 1, 0.5f, T)};
}
inline Tensor<2> made_state(std::size_t D, std::size_t Dv) { return numbers(6, 2, 0, D, Dv); }

/// The same in float64.
struct DeltaDoubles {
  Doubles q, k, v, g, beta, state;

  DeltaDoubles(const DeltaTokens& of, const Tensor<2>& state)
      : q(of.q), k(of.k), v(of.v), g(of.g), beta(of.beta), state(state) {}
};

/// The outputs, the last state, and the largest length of a column of the state plus what is
/// written to it, over all tokens: the size that roundings are units of.
struct DeltaReference {
  Doubles out, state;
  double size = 0;
};
inline DeltaReference recurrence_in_double(const DeltaDoubles& x, StateRule rule) {
  const std::size_t T = x.q.rows, D = x.q.cols, Dv = x.v.cols;
  DeltaReference result{Doubles(T, Dv), x.state};
  Doubles& s = result.state;
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t e = 0; e < Dv; ++e) {
      double held = 0, squares = 0;
      for (std::size_t d = 0; d < D; ++d) {
        s(d, e) *= std::exp(x.g(0, t));
        held += s(d, e) * x.k(t, d);
      }
      const double u = rule == StateRule::add ? x.v(t, e) : x.beta(0, t) * (x.v(t, e) - held);
      for (std::size_t d = 0; d < D; ++d) {
        s(d, e) += x.k(t, d) * u;
        result.out(t, e) += x.q(t, d) * s(d, e);
        squares += s(d, e) * s(d, e);
      }
      result.size = std::max(result.size, std::sqrt(squares) + std::abs(u) + std::abs(x.v(t, e)));
    }
  return result;
}

/// How far a float state may be from it. Keys have length 1, β and e^g are at most 1: a step never
/// makes an error longer, under either rule. Errors of T steps therefore add up, and a step's own
/// is at most D + 16 roundings of the size above. Chunks of c tokens add up to c more terms for
/// each element, and take exponentials of sums of g, which are off by c roundings of the largest
/// sum.
inline double delta_bound(const DeltaTokens& tokens, std::size_t chunk, double size) {
  double sum = 0;
  for (const float g : tokens.g) sum += std::abs(double(g));
  const double c = double(std::min(chunk, tokens.T()));
  const double of_step = double(tokens.D()) + 16 + c + sum / double(tokens.T()) * c;
  return double(tokens.T() + 1) * of_step * 0x1p-24 * (1 + size);
}

inline Tensor<2> floats_in(const Doubles& x) {
  Tensor<2> floats = empty(x.rows, x.cols);
  std::ranges::transform(x.numbers, floats.data(), [](double number) { return float(number); });
  return floats;
}

}  // namespace t2t
