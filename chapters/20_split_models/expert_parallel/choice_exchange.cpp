#include "20_split_models/expert_parallel/choice_exchange.hpp"

#include "19_ranks/collectives/all_to_all.hpp"
#include "20_split_models/expert_parallel/expert_ranges.hpp"
#include "shapes.hpp"

namespace t2t {

/// Sorts the choices by expert, and those whose weight is 0 behind all experts.
static Assignment sorted_choices(const Routed& routed) {
  const std::size_t E = routed.p.shape(1);
  std::vector<std::size_t> experts = routed.experts;
  for (std::size_t choice = 0; choice < experts.size(); ++choice)
    if (routed.weights.data()[choice] == 0) experts[choice] = E;
  Assignment sorted;
  assign(experts, E + 1, sorted);
  return sorted;
}

ChoiceExchange exchange_counts(const Communicator& ranks, const Routed& routed) {
  const std::size_t E = routed.p.shape(1), p = ranks.size;
  const std::size_t own = own_experts(E, p, ranks.rank).size();
  expect(routed.experts.size() < (1 << 24), "choices of a rank", "fewer than 2^24",
         routed.experts.size());
  ChoiceExchange exchange = {sorted_choices(routed), {}, std::vector<std::size_t>(p), {}};

  // Each rank gets the counts of its own experts.
  std::vector<float> counts(E), come(p * own);
  for (std::size_t e = 0; e < E; ++e) counts[e] = float(exchange.home.count(e));
  std::vector<std::size_t> experts_of;  // [p]
  for (std::size_t r = 0; r < p; ++r) {
    const Range range = own_experts(E, p, r);
    experts_of.push_back(range.size());
    exchange.to.push_back(exchange.home.begin[range.end] - exchange.home.begin[range.begin]);
  }
  all_to_all(ranks, counts, experts_of, come, std::vector<std::size_t>(p, own));

  for (std::size_t i = 0; i < come.size(); ++i) {
    exchange.from[i / own] += std::size_t(come[i]);
    exchange.experts.insert(exchange.experts.end(), std::size_t(come[i]), i % own);
  }
  return exchange;
}

static std::vector<std::size_t> times(std::vector<std::size_t> rows, std::size_t C) {
  for (std::size_t& n : rows) n *= C;
  return rows;
}

/// Sends blocks of so many rows, and returns those that come.
static Tensor<2> exchange_rows(const Communicator& ranks, const Tensor<2>& rows,
                               const std::vector<std::size_t>& to,
                               const std::vector<std::size_t>& from, std::size_t come) {
  const std::size_t C = rows.shape(1);
  Tensor<2> received = empty(come, C);
  all_to_all(ranks, {rows.data(), rows.size()}, times(to, C), {received.data(), received.size()},
             times(from, C));
  return received;
}

Tensor<2> to_experts(const Communicator& ranks, const ChoiceExchange& exchange,
                     const Tensor<2>& rows) {
  expect_shape("rows", rows, {exchange.sent(), rows.shape(1)});
  return exchange_rows(ranks, rows, exchange.to, exchange.from, exchange.received());
}

Tensor<2> to_home(const Communicator& ranks, const ChoiceExchange& exchange,
                  const Tensor<2>& results) {
  expect_shape("results", results, {exchange.received(), results.shape(1)});
  return exchange_rows(ranks, results, exchange.from, exchange.to, exchange.sent());
}

}  // namespace t2t
