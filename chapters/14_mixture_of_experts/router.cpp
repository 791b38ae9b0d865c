#include "14_mixture_of_experts/router.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_router(const RouterSettings& settings, std::size_t E, std::size_t bias) {
  expect(settings.k >= 1 && settings.k <= E, "k, the experts of a token",
         fmt::format("1 to E = {}", E), settings.k);
  expect(bias == 0 || bias == E, "elements of the bias", fmt::format("0 or E = {}", E), bias);
}

/// scores become p. False when one of them is not finite.
static bool score_row(Row scores, Scoring scoring) {
  if (!std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) return false;
  if (scoring == Scoring::softmax) return softmax_row(scores);
  for (float& s : scores) s = 1 / (1 + std::exp(-s));
  return true;
}

/// The k experts with the largest p + bias, the largest first; among equal ones, the lower index
/// first.
static void choose(ConstRow p, ConstRow bias, std::span<std::size_t> experts) {
  const auto key = [&](std::size_t e) { return p[e] + (bias.empty() ? 0 : bias[e]); };
  for (std::size_t i = 0; i < experts.size(); ++i) {
    std::size_t best = p.size();
    for (std::size_t e = 0; e < p.size(); ++e) {
      const bool taken = std::ranges::find(experts.first(i), e) != experts.begin() + long(i);
      if (!taken && (best == p.size() || key(e) > key(best))) best = e;
    }
    experts[i] = best;
  }
}

/// Divides the weights by their sum. Weights that are 0, or nearly so, count as the smallest normal
/// float, so that the sum is never 0.
static void normalize(Row weights) {
  float sum = 0;
  for (float& weight : weights) sum += weight = std::max(weight, std::numeric_limits<float>::min());
  for (float& weight : weights) weight /= sum;
}

bool route_row(Row scores, const RouterSettings& settings, ConstRow bias,
               std::span<std::size_t> experts, Row weights) {
  if (!score_row(scores, settings.scoring)) return false;
  choose(scores, bias, experts);
  for (std::size_t i = 0; i < experts.size(); ++i) weights[i] = scores[experts[i]];
  if (settings.normalized) normalize(weights);
  return true;
}

Routed route(const Tensor<2>& x, const Tensor<2>& router, const RouterSettings& settings,
             ConstRow bias) {
  const std::size_t T = x.shape(0), E = router.shape(0), k = settings.k;
  expect_router(settings, E, bias.size());
  Routed routed{matmul_bt(x, router), {}, std::vector<std::size_t>(T * k), empty(T, k)};
  routed.p = routed.scores;
  for (std::size_t t = 0; t < T; ++t)
    if (!route_row(row(routed.p, t), settings, bias, std::span(routed.experts).subspan(t * k, k),
                   row(routed.weights, t)))
      throw std::invalid_argument(
          fmt::format("scores of token {}: wanted finite numbers, got others", t));
  return routed;
}

/// The scores' gradient, from p times the gradient of p: nothing is divided by p, which may be
/// tiny.
static Tensor<2> of_scores(const Tensor<2>& p, Scoring scoring, const Tensor<2>& p_dp) {
  if (scoring == Scoring::sigmoid) return p_dp * (1 - p);
  const Tensor<1> delta = xt::sum(p_dp, {1});  // [T]
  return p_dp - p * as_column(delta);
}

Tensor<2> scores_backward(const Tensor<2>& p, Scoring scoring, const Tensor<2>& dp) {
  expect_shape("dp", dp, {p.shape(0), p.shape(1)});
  return of_scores(p, scoring, p * dp);
}

Tensor<2> route_backward(const Routed& routed, const RouterSettings& settings,
                         const Tensor<2>& dweights) {
  const std::size_t T = routed.p.shape(0), k = settings.k;
  expect_shape("dweights", dweights, {T, k});
  Tensor<2> p_dp = xt::zeros<float>({T, routed.p.shape(1)});
  std::vector<float> weights(k);  // of a token, before a capacity sets any to 0
  for (std::size_t t = 0; t < T; ++t) {
    const std::size_t* experts = &routed.experts[t * k];
    for (std::size_t i = 0; i < k; ++i) weights[i] = routed.p(t, experts[i]);
    float delta = 0;  // what each normalized weight loses, since its sum contains all p
    if (settings.normalized) {
      normalize(weights);
      for (std::size_t i = 0; i < k; ++i) delta += dweights(t, i) * weights[i];
    }
    for (std::size_t i = 0; i < k; ++i) p_dp(t, experts[i]) = weights[i] * (dweights(t, i) - delta);
  }
  return of_scores(routed.p, settings.scoring, p_dp);
}

}  // namespace t2t
