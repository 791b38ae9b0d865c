#include "14_mixture_of_experts/experts.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include "07_swiglu/fast/feed_forward_rows.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static void expect_mixture(const Mixture& mixture, std::size_t C) {
  expect(mixture.E() >= 1, "experts", "at least 1", 0);
  const Weight& router = mixture.router;
  if (router.rows() != mixture.E() || router.cols() != C)
    throw std::invalid_argument(fmt::format("router: wanted shape [{}, {}], got [{}, {}]",
                                            mixture.E(), C, router.rows(), router.cols()));
  expect_router(mixture.settings, mixture.E(), mixture.bias.size());
}

Tensor<2> mixture_of_experts(const Tensor<2>& x, const Mixture& mixture) {
  const std::size_t T = x.shape(0), C = x.shape(1), k = mixture.settings.k;
  expect_mixture(mixture, C);
  const Routed routed = route(x, mixture.router.floats(), mixture.settings, mixture.bias);
  Tensor<2> y = shared_network(x, mixture.shared, mixture.activation);  // zeros, if there is none
  for (std::size_t t = 0; t < T; ++t) {
    const Tensor<2> token = xt::view(x, xt::range(t, t + 1));  // [1, C]
    for (std::size_t i = 0; i < k; ++i) {
      const FeedForwardWeights& expert = mixture.experts[routed.experts[t * k + i]];
      xt::row(y, long(t)) +=
          routed.weights(t, i) * xt::row(feed_forward(token, expert, mixture.activation), 0);
    }
  }
  return y;
}

void assign(std::span<const std::size_t> experts, std::size_t E, Assignment& assignment) {
  std::vector<std::size_t>& begin = assignment.begin;
  begin.assign(E + 1, 0);
  assignment.choices.resize(experts.size()), assignment.rows.resize(experts.size());
  for (const std::size_t e : experts) ++begin[e + 1];
  for (std::size_t e = 0; e < E; ++e) begin[e + 1] += begin[e];
  for (std::size_t choice = 0; choice < experts.size(); ++choice) {
    const std::size_t at = begin[experts[choice]]++;
    assignment.choices[at] = choice, assignment.rows[choice] = at;
  }
  for (std::size_t e = E; e > 0; --e) begin[e] = begin[e - 1];  // each had moved to its end
  begin[0] = 0;
}

ExpertsScratch::ExpertsScratch(std::size_t max_rows, std::size_t C, std::size_t F, std::size_t E,
                               std::size_t k, Activation activation)
    : feed_forward(max_rows, F, activation) {
  expect_router({k}, E, 0);
  expect(max_rows >= 1, "max_rows", "at least 1", max_rows);
  expect(C >= 1, "C", "at least 1", C);
  expect(F >= 1, "F", "at least 1", F);
  p = empty(max_rows, E), weights = empty(max_rows, k);
  gathered = empty(max_rows * k, C), results = empty(max_rows * k, C);
  shared = empty(max_rows, C), gates = empty(max_rows, 1);
  experts.resize(max_rows * k);
  assign(experts, E, assignment);
}

static void expect_room(ConstMatrix x, const Mixture& mixture, const ExpertsScratch& scratch) {
  const std::size_t T = x.rows, C = x.cols, E = mixture.E(), k = mixture.settings.k;
  if (scratch.p.shape(0) < T || scratch.p.shape(1) != E || scratch.weights.shape(1) != k ||
      scratch.gathered.shape(1) != C)
    throw std::invalid_argument(fmt::format(
        "scratch: wanted max_rows ≥ {}, C = {}, E = {}, k = {}, got max_rows = {}, C = {}, E "
        "= {}, k = {}",
        T, C, E, k, scratch.p.shape(0), scratch.gathered.shape(1), scratch.p.shape(1),
        scratch.weights.shape(1)));
}

/// The choices of all tokens, each by a product of its own: a product of many rows could round a
/// token's scores differently, and close scores would change places with the tokens beside it.
/// Throws for the first token whose scores are not finite.
static void route_rows(ConstMatrix x, const Mixture& mixture, ExpertsScratch& scratch) {
  const std::size_t T = x.rows, E = mixture.E(), k = mixture.settings.k;
  const ConstMatrix router = mixture.router.floats();  // packed ones would need memory in the loop
  const Matrix p = Matrix(scratch.p).rows_from(0, T);
  std::atomic<std::size_t> refused = T;
  for_each_row(T, E * (x.cols + k), [&](std::size_t t) {
    matmul_bt(x.rows_from(t, 1), router, p.rows_from(t, 1));
    if (!route_row(p.row(t), mixture.settings, mixture.bias,
                   std::span(scratch.experts).subspan(t * k, k), row(scratch.weights, t)))
      for (std::size_t first = refused; t < first && !refused.compare_exchange_weak(first, t);) {
      }
  });
  if (refused < T)
    throw std::invalid_argument(
        fmt::format("scores of token {}: wanted finite numbers, got others", refused.load()));
}

/// One network call for each expert that has tokens.
static void run_experts(const Mixture& mixture, ExpertsScratch& scratch) {
  const Assignment& assignment = scratch.assignment;
  for (std::size_t e = 0; e < mixture.E(); ++e) {
    const std::size_t first = assignment.begin[e], count = assignment.count(e);
    if (count == 0) continue;
    feed_forward_rows(Matrix(scratch.gathered).rows_from(first, count), mixture.experts[e],
                      mixture.activation, scratch.feed_forward,
                      Matrix(scratch.results).rows_from(first, count));
  }
}

void run_choices(ConstMatrix x, const Mixture& mixture, std::span<const std::size_t> experts,
                 ConstMatrix weights, ExpertsScratch& scratch, Matrix y) {
  const std::size_t T = x.rows, C = x.cols, k = mixture.settings.k;
  expect_room(x, mixture, scratch);
  assign(experts, mixture.E(), scratch.assignment);
  for_each_row(T * k, C, [&](std::size_t r) {
    std::ranges::copy(x.row(scratch.assignment.choices[r] / k), row(scratch.gathered, r).begin());
  });
  run_experts(mixture, scratch);
  const Matrix shared = Matrix(scratch.shared).rows_from(0, T);
  if (mixture.shared.is_there())
    shared_network_rows(x, mixture.shared, mixture.activation, scratch.feed_forward,
                        Matrix(scratch.gates).rows_from(0, T), shared);
  for_each_row(T, k * C, [&](std::size_t t) {
    const Row sum = y.row(t);
    for (std::size_t i = 0; i < k; ++i) {
      const ConstRow result =
          row(std::as_const(scratch.results), scratch.assignment.rows[t * k + i]);
      const float weight = weights.row(t)[i];
      for (std::size_t c = 0; c < C; ++c) sum[c] = (i > 0 ? sum[c] : 0) + weight * result[c];
    }
    if (mixture.shared.is_there())
      for (std::size_t c = 0; c < C; ++c) sum[c] += shared.row(t)[c];
  });
}

void experts_rows(ConstMatrix x, const Mixture& mixture, ExpertsScratch& scratch, Matrix y) {
  expect_mixture(mixture, x.cols);
  expect_shape("y", y, {x.rows, x.cols});
  expect_room(x, mixture, scratch);
  route_rows(x, mixture, scratch);
  run_choices(x, mixture, std::span(scratch.experts).first(x.rows * mixture.settings.k),
              Matrix(scratch.weights).rows_from(0, x.rows), scratch, y);
}

}  // namespace t2t
