#include "25_sinks/gpt_oss/clamped_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

float clamped_gate(float gate, float up, const ClampedGate& settings) {
  gate = std::min(gate, settings.limit);
  up = std::clamp(up, -settings.limit, settings.limit);
  return gate / (1 + std::exp(-settings.slope * gate)) * (up + 1);
}

void expect_clamped_experts(const ClampedExperts& mixture, std::size_t C) {
  const std::size_t E = mixture.experts.size();
  expect(E >= 1, "experts", "at least 1", E);
  expect_shape("router", mixture.router, {E, C});
  expect_shape("b_router", mixture.b_router, {E});
  expect_router({mixture.chosen}, E, 0);
  const std::size_t F = mixture.experts[0].w_up.rows();
  for (std::size_t e = 0; e < E; ++e) {
    const ClampedExpert& expert = mixture.experts[e];
    const auto name = [&](const char* tensor) { return fmt::format("expert {}: {}", e, tensor); };
    expect_shape(name("w_gate"), expert.w_gate, {F, C});
    expect_shape(name("w_up"), expert.w_up, {F, C});
    expect_shape(name("w_down"), expert.w_down, {C, F});
    expect_shape(name("b_gate"), expert.b_gate, {F});
    expect_shape(name("b_up"), expert.b_up, {F});
    expect_shape(name("b_down"), expert.b_down, {C});
  }
}

/// A token's scores, which become p, its experts and their weights.
static bool choose_experts(ConstMatrix token, const ClampedExperts& mixture, Row p,
                           std::span<std::size_t> experts, Row weights) {
  matmul_bt(token, ConstMatrix(mixture.router.floats()), Matrix(p.data(), 1, p.size(), p.size()));
  for (std::size_t e = 0; e < p.size(); ++e) p[e] += mixture.b_router(e);
  // Softmax of all scores, divided by the sum over the chosen: softmax of the chosen scores.
  const RouterSettings settings{.k = mixture.chosen, .normalized = true};
  return route_row(p, settings, {}, experts, weights);
}

[[noreturn]] static void refuse_scores(std::size_t token) {
  throw std::invalid_argument(
      fmt::format("scores of token {}: wanted finite numbers, got others", token));
}

Tensor<2> clamped_experts(const Tensor<2>& x, const ClampedExperts& mixture) {
  const std::size_t T = x.shape(0), C = x.shape(1), E = mixture.experts.size(), k = mixture.chosen;
  expect_clamped_experts(mixture, C);
  Tensor<2> y = xt::zeros<float>({T, C});
  Tensor<1> p = empty(E), weights = empty(k);
  std::vector<std::size_t> chosen(k);
  for (std::size_t t = 0; t < T; ++t) {
    const Tensor<2> token = xt::view(x, xt::range(t, t + 1));  // [1, C]
    if (!choose_experts(token, mixture, row(p), chosen, row(weights))) refuse_scores(t);
    for (std::size_t i = 0; i < k; ++i) {
      const ClampedExpert& expert = mixture.experts[chosen[i]];
      const Tensor<2> gate = matmul_bt(token, expert.w_gate) + expert.b_gate;  // [1, F]
      const Tensor<2> up = matmul_bt(token, expert.w_up) + expert.b_up;        // [1, F]
      Tensor<2> hidden = empty(1, gate.shape(1));                              // [1, F]
      for (std::size_t f = 0; f < hidden.size(); ++f)
        hidden(0, f) = clamped_gate(gate(0, f), up(0, f), mixture.gate);
      const Tensor<2> out = matmul_bt(hidden, expert.w_down) + expert.b_down;  // [1, C]
      xt::row(y, long(t)) += weights(i) * xt::row(out, 0);
    }
  }
  return y;
}

ClampedScratch::ClampedScratch(std::size_t max_rows, const ClampedExperts& mixture, std::size_t C) {
  expect(max_rows >= 1, "max_rows", "at least 1", max_rows);
  expect_clamped_experts(mixture, C);
  const std::size_t k = mixture.chosen, F = mixture.experts[0].w_up.rows();
  p = empty(max_rows, mixture.experts.size()), weights = empty(max_rows, k);
  gathered = empty(max_rows * k, C), results = empty(max_rows * k, C);
  gate = empty(max_rows, F), up = empty(max_rows, F);
  experts.resize(max_rows * k);
}

/// One expert's network for its rows.
static void run_expert(const ClampedExpert& expert, const ClampedGate& settings, ConstMatrix x,
                       Matrix gate, Matrix up, Matrix y) {
  matmul_bt_each(x, {{expert.w_gate, gate}, {expert.w_up, up}});
  for_each_row(x.rows, 8 * up.cols, [&](std::size_t r) {
    for (std::size_t f = 0; f < up.cols; ++f)
      up.row(r)[f] =
          clamped_gate(gate.row(r)[f] + expert.b_gate(f), up.row(r)[f] + expert.b_up(f), settings);
  });
  matmul_bt(up, expert.w_down, y);
  add_bias(expert.b_down, y);
}

/// The choices of all tokens. Throws for the first token whose scores are not finite.
static void choose_all(ConstMatrix x, const ClampedExperts& mixture, ClampedScratch& scratch) {
  const std::size_t k = mixture.chosen;
  for (std::size_t t = 0; t < x.rows; ++t)
    if (!choose_experts(x.rows_from(t, 1), mixture, row(scratch.p, t),
                        std::span(scratch.experts).subspan(t * k, k), row(scratch.weights, t)))
      refuse_scores(t);
  assign(std::span(scratch.experts).first(x.rows * k), mixture.experts.size(), scratch.assignment);
}

void clamped_experts_rows(ConstMatrix x, const ClampedExperts& mixture, ClampedScratch& scratch,
                          Matrix y) {
  const std::size_t T = x.rows, C = x.cols, k = mixture.chosen;
  expect_shape("y", y, {T, C});
  expect_shape("router", mixture.router, {mixture.experts.size(), C});
  expect(T <= scratch.p.shape(0), "T, the rows of x",
         fmt::format("at most the {} that the scratch is made for", scratch.p.shape(0)), T);
  choose_all(x, mixture, scratch);
  const Assignment& assignment = scratch.assignment;
  for_each_row(T * k, C, [&](std::size_t r) {
    std::ranges::copy(x.row(assignment.choices[r] / k), row(scratch.gathered, r).begin());
  });
  for (std::size_t e = 0; e < mixture.experts.size(); ++e) {
    const std::size_t first = assignment.begin[e], count = assignment.count(e);
    if (count > 0)
      run_expert(mixture.experts[e], mixture.gate, Matrix(scratch.gathered).rows_from(first, count),
                 Matrix(scratch.gate).rows_from(0, count), Matrix(scratch.up).rows_from(0, count),
                 Matrix(scratch.results).rows_from(first, count));
  }
  for_each_row(T, k * C, [&](std::size_t t) {
    const Row sum = y.row(t);
    std::ranges::fill(sum, 0.0f);
    for (std::size_t i = 0; i < k; ++i) {
      const ConstRow result = row(std::as_const(scratch.results), assignment.rows[t * k + i]);
      for (std::size_t c = 0; c < C; ++c) sum[c] += scratch.weights(t, i) * result[c];
    }
  });
}

}  // namespace t2t
