#include "20_split_models/expert_parallel/parallel_experts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "13_training/backward/linear_backward.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "20_split_models/expert_parallel/run_experts.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Routed route_each(ConstMatrix x, const Mixture& mixture) {
  const std::size_t T = x.rows, E = mixture.router.rows(), k = mixture.settings.k;
  expect_router(mixture.settings, E, mixture.bias.size());
  Routed all = {empty(T, E), empty(T, E), std::vector<std::size_t>(T * k), empty(T, k)};
  for (std::size_t t = 0; t < T; ++t) {
    const Routed one =
        route(copy_of(x.rows_from(t, 1)), mixture.router.floats(), mixture.settings, mixture.bias);
    std::ranges::copy(one.scores, row(all.scores, t).begin());
    std::ranges::copy(one.p, row(all.p, t).begin());
    std::ranges::copy(one.experts, all.experts.begin() + std::ptrdiff_t(t * k));
    std::ranges::copy(one.weights, row(all.weights, t).begin());
  }
  return all;
}

static void expect_call(const Communicator& ranks, ConstMatrix x, const Mixture& mixture,
                        const Routed& routed, ConstMatrix y) {
  const std::size_t E = mixture.router.rows(), own = own_experts(E, ranks.size, ranks.rank).size();
  expect(mixture.E() == own, "own experts",
         fmt::format("{} of E = {} on rank {} of {}", own, E, ranks.rank, ranks.size), mixture.E());
  expect_shape("router", mixture.router, {E, x.cols});
  expect_shape("weights of the choices", routed.weights, {x.rows, mixture.settings.k});
  expect_shape("p", routed.p, {x.rows, E});
  expect_shape("y", y, {x.rows, x.cols});
  if (mixture.shared.is_there())
    throw std::invalid_argument("shared: wanted experts alone, got a network beside them");
}

/// The rows of the tokens whose choices are sent: [sent, C].
static Tensor<2> rows_of_choices(ConstMatrix x, const ChoiceExchange& exchange, std::size_t k) {
  Tensor<2> rows = empty(exchange.sent(), x.cols);
  for (std::size_t r = 0; r < exchange.sent(); ++r)
    std::ranges::copy(x.row(exchange.home.choices[r] / k), row(rows, r).begin());
  return rows;
}

/// y = Σ weight_i · result_i, in the order of a token's choices. What was dropped adds nothing.
static void add_results(const KeptExperts& kept, Matrix y) {
  const std::size_t k = kept.routed.weights.shape(1);
  for_each_row(y.rows, k * y.cols, [&](std::size_t t) {
    const Row sum = y.row(t);
    std::ranges::fill(sum, 0.0f);
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t r = kept.exchange.home.rows[t * k + i];
      if (r >= kept.exchange.sent()) continue;
      const ConstRow result = row(kept.results, r);
      const float weight = kept.routed.weights(t, i);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] = sum[c] + weight * result[c];
    }
  });
}

KeptExperts parallel_experts_rows(const Communicator& ranks, ConstMatrix x, const Mixture& mixture,
                                  Routed routed, Matrix y) {
  expect_call(ranks, x, mixture, routed, y);
  KeptExperts kept = {std::move(routed), {}, {}, {}};
  kept.exchange = exchange_counts(ranks, kept.routed);
  kept.received =
      to_experts(ranks, kept.exchange, rows_of_choices(x, kept.exchange, mixture.settings.k));
  kept.results = to_home(
      ranks, kept.exchange,
      run_own_experts(mixture.experts, mixture.activation, kept.exchange.experts, kept.received));
  add_results(kept, y);
  return kept;
}

void parallel_experts_backward(const Communicator& ranks, ConstMatrix x, const Mixture& mixture,
                               const KeptExperts& kept, ConstMatrix dy, Matrix dx,
                               const MixtureGradients& gradients) {
  expect_call(ranks, x, mixture, kept.routed, dx);
  expect_shape("dy", dy, {x.rows, x.cols});
  if (!is_gated(mixture.activation))
    throw std::invalid_argument("experts to train: wanted gated networks, got others");
  const std::size_t k = mixture.settings.k, sent = kept.exchange.sent();
  const std::vector<std::size_t>& choices = kept.exchange.home.choices;

  // The gradients of the weights, at home, and then of the results.
  Tensor<2> dresults = rows_of_choices(dy, kept.exchange, k);  // [sent, C]
  const Tensor<1> dots = xt::sum(dresults * kept.results, {1});
  Tensor<2> dweights = xt::zeros<float>({x.rows, k});
  for (std::size_t r = 0; r < sent; ++r) {
    dweights.data()[choices[r]] = dots(r);
    for (float& element : row(dresults, r)) element *= kept.routed.weights.data()[choices[r]];
  }

  const Tensor<2> dreceived = own_experts_backward(
      mixture.experts, mixture.activation, kept.exchange.experts, kept.received,
      to_experts(ranks, kept.exchange, dresults), gradients.experts);
  const Tensor<2> drows = to_home(ranks, kept.exchange, dreceived);  // [sent, C]

  // A token's gradients come in the order of experts, which is chapter 14's order, too.
  for (std::size_t t = 0; t < dx.rows; ++t) std::ranges::fill(dx.row(t), 0.0f);
  for (std::size_t r = 0; r < sent; ++r) add_row(dx.row(choices[r] / k), row(drows, r));
  const Tensor<2> dscores = route_backward(kept.routed, mixture.settings, dweights);  // [T, E]
  add_weight_gradient(dscores, x, gradients.router.floats());
  add_input_gradient(dscores, mixture.router.floats(), dx);
}

}  // namespace t2t
