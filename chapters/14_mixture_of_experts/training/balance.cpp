#include "14_mixture_of_experts/training/balance.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "shapes.hpp"

namespace t2t {

Tensor<1> loads_of(std::span<const std::size_t> experts, std::size_t E) {
  expect(!experts.empty(), "choices", "at least 1", 0);
  Tensor<1> loads = xt::zeros<float>({E});
  for (const std::size_t e : experts) {
    expect(e < E, "an expert", "below E = " + std::to_string(E), e);
    loads(e) += 1 / float(experts.size());
  }
  return loads;
}

double balance_loss(const Routed& routed, float factor, Tensor<2>& dp) {
  const std::size_t T = routed.p.shape(0), E = routed.p.shape(1);
  expect_shape("dp", dp, {T, E});
  const Tensor<1> f = loads_of(routed.experts, E);  // [E]
  const Tensor<1> P = xt::mean(routed.p, {0});      // [E]
  const float each = factor * float(E) / float(T);  // p[t,e] is one T-th of P[e]
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t e = 0; e < E; ++e) dp(t, e) += each * f(e);
  return double(factor) * double(E) * double(xt::sum(f * P)());
}

double z_loss(const Routed& routed, float factor, Tensor<2>& dscores) {
  const std::size_t T = routed.scores.shape(0), E = routed.scores.shape(1);
  expect_shape("dscores", dscores, {T, E});
  expect(T >= 1, "T, the tokens", "at least 1", 0);
  double sum = 0;
  for (std::size_t t = 0; t < T; ++t) {
    const ConstRow scores = row(routed.scores, t);
    const double most = std::ranges::max(scores);
    double exponentials = 0;
    for (const float s : scores) exponentials += std::exp(double(s) - most);
    const double log_sum = most + std::log(exponentials);
    sum += log_sum * log_sum;
    // The derivative of ln Σ e^score is softmax.
    for (std::size_t e = 0; e < E; ++e)
      dscores(t, e) +=
          float(double(factor) * 2 * log_sum * std::exp(double(scores[e]) - log_sum) / double(T));
  }
  return double(factor) * sum / double(T);
}

void adjust_bias(const Tensor<1>& loads, float rate, Tensor<1>& bias) {
  expect_shape("bias", bias, {loads.size()});
  const float even = 1 / float(loads.size());
  for (std::size_t e = 0; e < bias.size(); ++e)
    bias(e) += loads(e) < even ? rate : loads(e) > even ? -rate : 0;
}

std::size_t capacity_of(std::size_t T, std::size_t k, std::size_t E, double slack) {
  return std::size_t(std::ceil(slack * double(T * k) / double(E)));
}

std::size_t limit_to(std::size_t capacity, Routed& routed) {
  expect(capacity >= 1, "capacity", "at least 1", 0);
  std::vector<std::size_t> taken(routed.p.shape(1), 0);
  std::size_t dropped = 0;
  for (std::size_t choice = 0; choice < routed.experts.size(); ++choice)
    if (++taken[routed.experts[choice]] > capacity) routed.weights.data()[choice] = 0, ++dropped;
  return dropped;
}

std::vector<std::vector<std::size_t>> expert_choice(const Tensor<2>& p, std::size_t capacity) {
  const std::size_t T = p.shape(0), E = p.shape(1);
  expect(capacity >= 1 && capacity <= T, "capacity", "1 to T = " + std::to_string(T), capacity);
  std::vector<std::vector<std::size_t>> experts(T);
  for (std::size_t e = 0; e < E; ++e) {
    std::vector<std::size_t> tokens(T);
    std::iota(tokens.begin(), tokens.end(), std::size_t(0));
    std::ranges::sort(tokens, [&](std::size_t a, std::size_t b) {
      return p(a, e) > p(b, e) || (p(a, e) == p(b, e) && a < b);
    });
    for (std::size_t i = 0; i < capacity; ++i) experts[tokens[i]].push_back(e);
  }
  return experts;
}

}  // namespace t2t
