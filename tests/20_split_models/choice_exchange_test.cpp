// Chapter 20: choices that are sent to the ranks of their experts, and their results back.
#include "20_split_models/expert_parallel/choice_exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "20_split_models/each_rank.hpp"
#include "20_split_models/expert_layer.hpp"
#include "support/refuses.hpp"

namespace t2t::parallel_experts_tests {

/// Choices made by hand: token t chooses experts[t·k], … with these weights.
static Routed chosen(std::size_t E, std::size_t k, Sizes experts, const Floats& weights) {
  const std::size_t tokens = experts.size() / k;
  Routed routed = {xt::zeros<float>({tokens, E}), xt::zeros<float>({tokens, E}), std::move(experts),
                   empty(tokens, k)};
  std::ranges::copy(weights, routed.weights.begin());
  return routed;
}

/// One of the lists that each rank knows of these choices, of which rank r has choices[r].
static OnRanks known_of(const std::vector<Routed>& choices, Sizes ChoiceExchange::*list) {
  return on_ranks(choices.size(), [&](const Communicator& ranks) -> Floats {
    const ChoiceExchange exchange = exchange_counts(ranks, choices[ranks.rank]);
    return {(exchange.*list).begin(), (exchange.*list).end()};
  });
}

TEST_CASE("by hand: what two ranks with two experts each know of their choices") {
  // Rank 0's tokens choose 1 0, 3 1 and 1 2, and rank 1's 2 0 and 0 1.
  const std::vector<Routed> choices = {chosen(4, 2, {1, 0, 3, 1, 1, 2}, Floats(6, 0.5f)),
                                       chosen(4, 2, {2, 0, 0, 1}, Floats(4, 0.5f))};
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::to), {{4, 2}, {3, 1}}) == "");
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::from), {{4, 3}, {2, 1}}) == "");
  // Rank 0 gets rows for its experts 0, 1, 1, 1 from itself, and for 0, 0, 1 from rank 1.
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::experts),
                         {{0, 1, 1, 1, 0, 0, 1}, {0, 1, 0}}) == "");
}

TEST_CASE("by hand: three ranks have two experts, one and one, and one choice is dropped") {
  // Each rank's only token chooses 3 and 1; rank 1's choice of 3 is dropped.
  const Routed both = chosen(4, 2, {3, 1}, {0.5, 0.5}), one = chosen(4, 2, {3, 1}, {0, 0.5});
  const std::vector<Routed> choices = {both, one, both};
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::to),
                         {{1, 0, 1}, {1, 0, 0}, {1, 0, 1}}) == "");
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::from),
                         {{1, 1, 1}, {0, 0, 0}, {1, 0, 1}}) == "");
  CHECK(first_wrong_rank(known_of(choices, &ChoiceExchange::experts), {{1, 1, 1}, {}, {0, 0}}) ==
        "");
}

TEST_CASE("by hand: the own choices by expert, and those dropped behind all others") {
  const Communicator alone = {all_ranks().handle, 0, 1};
  const Routed routed = chosen(3, 2, {2, 0, 1, 2, 0, 1}, {0.5, 0.5, 0, 1, 0, 1});
  const ChoiceExchange exchange = exchange_counts(alone, routed);
  CHECK(exchange.sent() == 4);
  const Sizes& choices = exchange.home.choices;
  const std::string equal = "all 4 numbers are equal";
  CHECK(first_difference(std::span(choices).first(4), Sizes{1, 5, 0, 3}) == equal);
  // The rows of choices 0, 1, 3 and 5, and of those dropped.
  const Sizes& rows = exchange.home.rows;
  CHECK(first_difference(Sizes{rows[0], rows[1], rows[3], rows[5]}, Sizes{2, 0, 3, 1}) == equal);
  CHECK(rows[2] >= 4);
  CHECK(rows[4] >= 4);
}

/// What two ranks with an expert each know if rank 0 sends 1 row to itself and 2 to rank 1, and
/// rank 1 sends 3 to rank 0 and none to itself. No choice is dropped.
static ChoiceExchange known(std::size_t rank) {
  if (rank == 0) return {{{0, 1, 3, 3}, {0, 1, 2}, {0, 1, 2}}, {1, 2}, {1, 3}, {0, 0, 0, 0}};
  return {{{0, 3, 3, 3}, {0, 1, 2}, {0, 1, 2}}, {3, 0}, {2, 0}, {0, 0}};
}

TEST_CASE("by hand: rows of two elements go to the experts' ranks, in the order of the ranks") {
  const OnRanks got = on_ranks(2, [&](const Communicator& ranks) {
    const Tensor<2> rows = ranks.rank == 0 ? Tensor<2>{{1, 2}, {3, 4}, {5, 6}}
                                           : Tensor<2>{{10, 20}, {30, 40}, {50, 60}};
    return floats_of(to_experts(ranks, known(ranks.rank), rows));
  });
  CHECK(first_wrong_rank(got, {{1, 2, 10, 20, 30, 40, 50, 60}, {3, 4, 5, 6}}) == "");
}

TEST_CASE("by hand: results of two elements come home to the places of their rows") {
  const OnRanks got = on_ranks(2, [&](const Communicator& ranks) {
    const Tensor<2> results = ranks.rank == 0 ? Tensor<2>{{1, 2}, {10, 20}, {30, 40}, {50, 60}}
                                              : Tensor<2>{{3, 4}, {5, 6}};
    return floats_of(to_home(ranks, known(ranks.rank), results));
  });
  CHECK(first_wrong_rank(got, {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40, 50, 60}}) == "");
}

TEST_CASE("by hand: rows of two ranks go to three experts, and come back in the order they came") {
  // Rank 0 has experts 0 and 1, rank 1 has expert 2. Rank 0's tokens choose 2 0, 1 2; rank 1's one
  // token 1 0, of which 0 is dropped.
  const OnRanks got = on_ranks(2, [&](const Communicator& ranks) -> Floats {
    const bool first = ranks.rank == 0;
    const Routed routed =
        first ? chosen(3, 2, {2, 0, 1, 2}, {0.5, 0.5, 0.25, 0.75}) : chosen(3, 2, {1, 0}, {1, 0});
    const ChoiceExchange exchange = exchange_counts(ranks, routed);
    Floats all = {float(exchange.sent()), float(exchange.to[0]), float(exchange.to[1]),
                  float(exchange.from[0]), float(exchange.from[1])};
    for (const std::size_t e : exchange.experts) all.push_back(float(e));
    // A row's only element says which rank's choice it is.
    Tensor<2> rows = empty(exchange.sent(), std::size_t(1));
    for (std::size_t r = 0; r < exchange.sent(); ++r)
      rows(r, 0) = float(10 * ranks.rank + exchange.home.choices[r]);
    Tensor<2> come = to_experts(ranks, exchange, rows);
    all.insert(all.end(), come.begin(), come.end());
    for (float& element : come) element += 100;
    const Tensor<2> back = to_home(ranks, exchange, come);
    all.insert(all.end(), back.begin(), back.end());
    return all;
  });
  CHECK(got.error == "");
  if (!got.error.empty()) return;
  // Rank 0 sends itself choices 1 and 2, and rank 1 choices 0 and 3; rank 1's choice 0 comes.
  CHECK(got.results[0] == Floats{4, 2, 2, 2, 1, 0, 1, 1, 1, 2, 10, 101, 102, 100, 103});
  CHECK(got.results[1] == Floats{1, 1, 0, 2, 0, 0, 0, 0, 3, 110});
}

TEST_CASE("what is sent comes back to where it was, for any number of ranks, experts and tokens") {
  for (std::size_t p = 1; p <= most_ranks; ++p)
    for (const std::size_t E : {5, 8})
      for (const std::size_t tokens : {0, 1, 30}) {
        CAPTURE(p);
        CAPTURE(E);
        CAPTURE(tokens);
        const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
          // Rank r has r tokens more, of which every fifth choice is dropped.
          const std::size_t choices = 2 * (tokens + ranks.rank);
          Sizes experts(choices);
          Floats weights(choices, 0.5f);
          for (std::size_t i = 0; i < choices; ++i) {
            experts[i] = (i / 2 * 3 + i % 2 + ranks.rank) % E;
            if (i % 5 == 4) weights[i] = 0;
          }
          const ChoiceExchange exchange = exchange_counts(ranks, chosen(E, 2, experts, weights));
          // A row says for which expert it is, and which choice of which rank. The expert adds 100.
          const std::size_t sent = exchange.sent(), first = own_experts(E, p, ranks.rank).begin;
          Tensor<2> rows = empty(sent, 3);
          for (std::size_t r = 0; r < sent; ++r) {
            const std::size_t choice = exchange.home.choices[r];
            rows(r, 0) = float(experts[choice]), rows(r, 1) = float(choice);
            rows(r, 2) = float(ranks.rank);
          }
          Tensor<2> come = to_experts(ranks, exchange, rows);
          std::size_t wrong = 0;
          for (std::size_t r = 0; r < come.shape(0); ++r) {
            wrong += come(r, 0) != float(first + exchange.experts[r]);
            come(r, 0) += 100;
          }
          const Tensor<2> back = to_home(ranks, exchange, come);
          for (std::size_t r = 0; r < sent; ++r)
            wrong += back(r, 0) != rows(r, 0) + 100 || back(r, 1) != rows(r, 1) ||
                     back(r, 2) != rows(r, 2);
          const std::size_t dropped = choices / 5;
          return {float(wrong), float(sent + dropped - choices)};
        });
        CHECK(first_wrong(got, {0, 0}) == "");
        if (!got.error.empty()) return;  // ranks that failed answer no more calls
      }
}

TEST_CASE("rows and results of another number, and more ranks than experts, are refused") {
  const Communicator alone = {all_ranks().handle, 0, 1};
  const ChoiceExchange exchange = exchange_counts(alone, chosen(2, 1, {1, 0, 1}, {1, 0, 1}));
  const Tensor<2> three = xt::zeros<float>({3, 4});
  REFUSES(to_experts(alone, exchange, three), "rows: wanted shape [2, 4], got [3, 4]");
  REFUSES(to_home(alone, exchange, three), "results: wanted shape [2, 4], got [3, 4]");
  REFUSES(exchange_counts({alone.handle, 0, 3}, chosen(2, 1, {1}, {1})),
          "ranks: wanted at most one for each of E = 2 experts, got 3");
}

TEST_CASE("as many choices as floats can't count are refused") {
  if (all_ranks().rank != 0) return;  // they take 200 MB
  const std::size_t many = std::size_t(1) << 24;
  const Communicator alone = {all_ranks().handle, 0, 1};
  const Routed routed = {empty(1, 1), empty(1, 1), Sizes(many, 0), empty(many, 1)};
  REFUSES(exchange_counts(alone, routed),
          "choices of a rank: wanted fewer than 2^24, got 16777216");
}

}  // namespace t2t::parallel_experts_tests
