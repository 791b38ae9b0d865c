#include "22_grid/experts/mixture_passes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "13_training/backward/linear_backward.hpp"
#include "19_ranks/collectives/reduction.hpp"
#include "20_split_models/expert_parallel/run_experts.hpp"
#include "rows.hpp"

namespace t2t {

/// What `call` returns; what this rank sends meanwhile is added to `count`.
template <class Call>
static auto counted(Sent& count, Call call) {
  const Sent before = sent();
  auto result = call();
  count += sent() - before;
  return result;
}

ChoiceExchange ExpertLine::exchange(const Routed& routed) {
  return counted(sent_, [&] { return exchange_counts(ranks_, routed); });
}
Tensor<2> ExpertLine::to_experts(const ChoiceExchange& exchange, const Tensor<2>& rows) {
  return counted(sent_, [&] { return t2t::to_experts(ranks_, exchange, rows); });
}
Tensor<2> ExpertLine::to_home(const ChoiceExchange& exchange, const Tensor<2>& results) {
  return counted(sent_, [&] { return t2t::to_home(ranks_, exchange, results); });
}

Range rows_from(const ChoiceExchange& exchange, std::size_t sender) {
  const auto end = exchange.from.begin() + std::ptrdiff_t(sender);
  const std::size_t begin = std::accumulate(exchange.from.begin(), end, std::size_t(0));
  return {begin, begin + exchange.from[sender]};
}

/// The rows of the tokens whose choices are sent: [sent, C].
static Tensor<2> rows_of_choices(ConstMatrix x, const KeptExperts& kept) {
  const std::size_t k = kept.routed.weights.shape(1);
  Tensor<2> rows = empty(kept.exchange.sent(), x.cols);
  for (std::size_t r = 0; r < rows.shape(0); ++r)
    std::ranges::copy(x.row(kept.exchange.home.choices[r] / k), row(rows, r).begin());
  return rows;
}

/// Calls this for the rows of each sender, with the own experts of these rows. It returns a row for
/// each, and all of them together are [received, C].
template <class Call>
static Tensor<2> for_each_sender(const ChoiceExchange& exchange, const Tensor<2>& received,
                                 Call call) {
  Tensor<2> results = empty(received.shape(0), received.shape(1));
  for (std::size_t sender = 0; sender < exchange.from.size(); ++sender) {
    const Range rows = rows_from(exchange, sender);
    const Tensor<2> of_sender =
        call(sender, rows, std::span(exchange.experts).subspan(rows.begin, rows.size()));
    for (std::size_t r = 0; r < rows.size(); ++r)
      std::ranges::copy(row(of_sender, r), row(results, rows.begin + r).begin());
  }
  return results;
}

static Tensor<2> rows_in(const Tensor<2>& x, Range rows) {
  return copy_of(ConstMatrix(x).rows_from(rows.begin, rows.size()));
}

/// y = Σ weight_i · result_i, in the order of a token's choices.
static void add_results(const KeptExperts& kept, Matrix y) {
  const std::size_t k = kept.routed.weights.shape(1);
  for (std::size_t t = 0; t < y.rows; ++t) {
    const Row sum = y.row(t);
    std::ranges::fill(sum, 0.0f);
    for (std::size_t i = 0; i < k; ++i) {
      const std::size_t r = kept.exchange.home.rows[t * k + i];
      if (r >= kept.exchange.sent()) continue;  // a weight of 0 is not sent
      const ConstRow result = row(kept.results, r);
      const float weight = kept.routed.weights(t, i);
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += weight * result[c];
    }
  }
}

KeptExperts mixture_forward(ExpertLine& line, ConstMatrix x, const Mixture& mixture, Routed routed,
                            Matrix y) {
  KeptExperts kept = {std::move(routed), {}, {}, {}};
  kept.exchange = line.exchange(kept.routed);
  kept.received = line.to_experts(kept.exchange, rows_of_choices(x, kept));
  const Tensor<2> results =
      for_each_sender(kept.exchange, kept.received,
                      [&](std::size_t, Range rows, std::span<const std::size_t> experts) {
                        return run_own_experts(mixture.experts, mixture.activation, experts,
                                               rows_in(kept.received, rows));
                      });
  kept.results = line.to_home(kept.exchange, results);
  add_results(kept, y);
  return kept;
}

/// The gradient of each choice's weight: the sum over shards of dy·result.
static Tensor<2> weight_gradients(const ShardGroup& shards, const KeptExperts& kept,
                                  const Tensor<2>& dresults) {
  Tensor<2> dweights = xt::zeros_like(kept.routed.weights);      // [T, k]
  const Tensor<1> dots = xt::sum(dresults * kept.results, {1});  // [sent]
  for (std::size_t r = 0; r < dots.size(); ++r)
    dweights.data()[kept.exchange.home.choices[r]] = dots(r);
  shards.sum({dweights.data(), dweights.size()});
  return dweights;
}

/// Gradients of the rows that came, [received, C], from those of their results.
static Tensor<2> at_the_experts(const Mixture& mixture, const MixtureWayBack& back,
                                const Tensor<2>& dresults) {
  return for_each_sender(back.kept.exchange, back.kept.received,
                         [&](std::size_t sender, Range rows, std::span<const std::size_t> experts) {
                           Tensor<2> drows =
                               own_experts_backward(mixture.experts, mixture.activation, experts,
                                                    rows_in(back.kept.received, rows),
                                                    rows_in(dresults, rows), back.experts);
                           back.added(sender);
                           return drows;
                         });
}

void mixture_backward(ExpertLine& line, const ShardGroup& shards, ConstMatrix x,
                      const Mixture& mixture, const MixtureWayBack& back) {
  const auto& [kept, dy, dx, router, experts, added, losses] = back;
  const std::vector<std::size_t>& choices = kept.exchange.home.choices;
  const std::size_t k = mixture.settings.k;
  Tensor<2> dresults = rows_of_choices(dy, kept);                       // [sent, C]
  const Tensor<2> dweights = weight_gradients(shards, kept, dresults);  // [T, k]
  for (std::size_t r = 0; r < dresults.shape(0); ++r)
    for (float& element : row(dresults, r)) element *= kept.routed.weights.data()[choices[r]];
  const Tensor<2> received = line.to_experts(kept.exchange, dresults);  // [received, C]
  const Tensor<2> drows =
      line.to_home(kept.exchange, at_the_experts(mixture, back, received));  // [sent, C]
  for (std::size_t t = 0; t < dx.rows; ++t) std::ranges::fill(dx.row(t), 0.0f);
  for (std::size_t r = 0; r < drows.shape(0); ++r) add_row(dx.row(choices[r] / k), row(drows, r));

  Tensor<2> dscores = route_backward(kept.routed, mixture.settings, dweights);  // [T, E]
  losses(dscores);
  add_weight_gradient(dscores, x, router.floats());
  if (shards.rank == 0) add_input_gradient(dscores, mixture.router.floats(), dx);
}

}  // namespace t2t
