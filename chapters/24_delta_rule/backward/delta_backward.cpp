#include "24_delta_rule/backward/delta_backward.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_delta_backward(const DeltaTokens& tokens, StateRule rule, ConstMatrix state,
                           ConstMatrix dout, ConstMatrix dstate) {
  expect_delta(tokens, rule, state);
  expect_shape("dout", dout, {tokens.T(), tokens.Dv()});
  expect_shape("dstate", dstate, {tokens.D(), tokens.Dv()});
}

/// A row as a column [n, 1], and as a matrix of one row [1, n].
static ConstMatrix column(ConstRow x) { return {x.data(), x.size(), 1, 1}; }
static ConstMatrix line(ConstRow x) { return {x.data(), 1, x.size(), x.size()}; }

static float dot_of(ConstRow a, ConstRow b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * b[i];
  return float(sum);
}

/// The state after each token, and what each wrote.
struct DeltaHistory {
  std::vector<Tensor<2>> states;  // [T + 1] of [D, Dv], the first is the one before all tokens
  Tensor<2> u;                    // [T, Dv]
};

static DeltaHistory history_of(const DeltaTokens& tokens, StateRule rule, const Tensor<2>& state) {
  DeltaHistory history{{state}, empty(tokens.T(), tokens.Dv())};
  Tensor<1> out = empty(tokens.Dv());
  for (std::size_t t = 0; t < tokens.T(); ++t) {
    Tensor<2> after = history.states.back();
    delta_step(row(tokens.q, t), row(tokens.k, t), row(tokens.v, t), tokens.g(t),
               rule == StateRule::correct ? tokens.beta(t) : 1, rule, after, row(history.u, t),
               row(out));
    history.states.push_back(std::move(after));
  }
  return history;
}

// [reverse]
DeltaGradients delta_backward(const DeltaTokens& tokens, StateRule rule, const Tensor<2>& state,
                              const Tensor<2>& dout, const Tensor<2>& dstate) {
  expect_delta_backward(tokens, rule, state, dout, dstate);
  const std::size_t T = tokens.T();
  const DeltaHistory history = history_of(tokens, rule, state);
  DeltaGradients d{{xt::zeros_like(tokens.q), xt::zeros_like(tokens.k), xt::zeros_like(tokens.v),
                    xt::zeros<float>({T}), xt::zeros<float>({T})},
                   dstate};
  Tensor<2>& ds = d.state;  // [D, Dv]
  for (std::size_t t = T; t-- > 0;) {
    const ConstRow k = row(tokens.k, t), u = row(history.u, t);
    const float decay = std::exp(tokens.g(t));
    const Tensor<2> faded = decay * history.states[t];  // [D, Dv], S′

    // Back through the output, o = Sᵀ·q, and through what was written, S = S′ + k·uᵀ.
    matvec(history.states[t + 1], row(dout, t), row(d.tokens.q, t));
    add_matmul(column(row(tokens.q, t)), line(row(dout, t)), ds);
    matvec(ds, u, row(d.tokens.k, t));
    const Row dv = row(d.tokens.v, t);  // first du
    matmul(line(k), ds, {dv.data(), 1, dv.size(), dv.size()});

    // Back through the error, u = β·(v − S′ᵀ·k).
    if (rule == StateRule::correct) {
      Tensor<2> error = copy_of(line(row(tokens.v, t)));  // [1, Dv]
      const Tensor<2> minus_k = -copy_of(line(k));        // [1, D]
      add_matmul(minus_k, faded, error);
      d.tokens.beta(t) = dot_of(dv, row(error, 0));
      for (float& value : dv) value *= tokens.beta(t);
      const Tensor<2> minus = -copy_of(line(dv));  // [1, Dv]
      add_matmul(faded, column(row(minus, 0)), {row(d.tokens.k, t).data(), tokens.D(), 1, 1});
      add_matmul(column(k), minus, ds);
    }

    // Back through the decay.
    d.tokens.g(t) = dot_of({ds.data(), ds.size()}, {faded.data(), faded.size()});
    ds *= decay;
  }
  return d;
}
// [/reverse]

}  // namespace t2t
