#include "24_delta_rule/delta_rule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "shapes.hpp"

namespace t2t {

static double squares_of(ConstRow x) {
  double sum = 0;
  for (const float value : x) sum += double(value) * value;
  return sum;
}

void expect_delta(const DeltaTokens& tokens, StateRule rule, ConstMatrix state) {
  const std::size_t T = tokens.T(), D = tokens.D(), Dv = tokens.Dv();
  expect(D >= 1, "D, the width of keys", "at least 1", D);
  expect(Dv >= 1, "Dv, the width of values", "at least 1", Dv);
  expect_shape("k", tokens.k, {T, D});
  expect_shape("v", tokens.v, {T, Dv});
  expect_shape("g", tokens.g, {T});
  expect_shape("state", state, {D, Dv});
  for (std::size_t t = 0; t < T; ++t)
    if (!(tokens.g(t) <= 0)) refuse(fmt::format("g of token {}", t), "at most 0", tokens.g(t));
  if (rule == StateRule::add) return;
  expect_shape("beta", tokens.beta, {T});
  for (std::size_t t = 0; t < T; ++t) {
    const float beta = tokens.beta(t);
    if (!(beta >= 0 && beta <= 1)) refuse(fmt::format("beta of token {}", t), "from 0 to 1", beta);
    const double growth = beta * squares_of(row(tokens.k, t));
    if (!(growth <= 2)) refuse(fmt::format("beta·|k|² of token {}", t), "at most 2", growth);
  }
}

// [step]
void delta_step(ConstRow q, ConstRow k, ConstRow v, float g, float beta, StateRule rule,
                Matrix state, Row u, Row out) {
  const std::size_t D = q.size(), Dv = v.size();
  // The state fades, and is read at k: what it holds there.
  const float decay = std::exp(g);
  std::ranges::fill(u, 0.0f);
  for (std::size_t d = 0; d < D; ++d) {
    const Row s = state.row(d);
    for (std::size_t e = 0; e < Dv; ++e) s[e] *= decay;
    for (std::size_t e = 0; e < Dv; ++e) u[e] += k[d] * s[e];
  }
  // What is to be written at k: all of v, or what is missing of it.
  for (std::size_t e = 0; e < Dv; ++e)
    u[e] = rule == StateRule::correct ? beta * (v[e] - u[e]) : v[e];
  // It is written, and the new state is read at q.
  std::ranges::fill(out, 0.0f);
  for (std::size_t d = 0; d < D; ++d) {
    const Row s = state.row(d);
    for (std::size_t e = 0; e < Dv; ++e) s[e] += k[d] * u[e];
    for (std::size_t e = 0; e < Dv; ++e) out[e] += q[d] * s[e];
  }
}
// [/step]

Tensor<2> delta_recurrence(const DeltaTokens& tokens, StateRule rule, Tensor<2>& state) {
  expect_delta(tokens, rule, state);
  Tensor<2> out = empty(tokens.T(), tokens.Dv());  // [T, Dv]
  Tensor<1> u = empty(tokens.Dv());                // [Dv]
  for (std::size_t t = 0; t < tokens.T(); ++t)
    delta_step(row(tokens.q, t), row(tokens.k, t), row(tokens.v, t), tokens.g(t),
               rule == StateRule::correct ? tokens.beta(t) : 1, rule, state, row(u), row(out, t));
  return out;
}

Tensor<2> unit_rows(ConstMatrix x, float eps) {
  expect(eps > 0, "eps", "a number above 0", eps);
  Tensor<2> unit = empty(x.rows, x.cols);  // [T, D]
  for (std::size_t t = 0; t < x.rows; ++t) {
    const float r = float(1 / std::sqrt(squares_of(x.row(t)) + eps));
    for (std::size_t d = 0; d < x.cols; ++d) unit(t, d) = r * x.row(t)[d];
  }
  return unit;
}

}  // namespace t2t
