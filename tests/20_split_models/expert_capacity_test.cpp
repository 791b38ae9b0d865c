// Chapter 20: the capacity of experts whose tokens come from several ranks.
#include "20_split_models/expert_parallel/expert_capacity.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "13_training/differences.hpp"
#include "14_mixture_of_experts/training/balance.hpp"
#include "20_split_models/expert_layer.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"

namespace t2t::parallel_experts_tests {

/// All ranks' weights of choices, [T·k], after a limit.
static Floats limited(std::size_t p, const Layer& some, const ExpertCapacity& capacity,
                      Floats& dropped) {
  const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
    const Tensor<2> x = cut(all_tokens(), own_tokens(Tokens::none_on_rank_0, p, ranks.rank));
    Routed routed = route_each(x, some.of_rank(ranks));
    Floats all = {float(limit_choices(ranks, capacity, routed))};
    all.insert(all.end(), routed.weights.begin(), routed.weights.end());
    return all;
  });
  CHECK(got.error == "");
  Floats weights;
  dropped.clear();
  if (!got.error.empty()) return weights;
  for (const Floats& of_rank : got.results) {
    dropped.push_back(of_rank[0]);
    weights.insert(weights.end(), of_rank.begin() + 1, of_rank.end());
  }
  return weights;
}

TEST_CASE("a capacity over all ranks drops what one rank with all tokens drops") {
  const Layer some = layer(5, 2);
  for (const double slack : {0.0, 0.5, 1.0, 1.25})
    for (std::size_t p = 1; p <= most_ranks; ++p) {
      CAPTURE(slack);
      CAPTURE(p);
      Routed want = route_each(all_tokens(), some.whole());
      std::size_t dropped = 0;
      if (slack > 0) dropped = limit_to(capacity_of(T, 2, 5, slack), want);
      Floats of_ranks;
      CHECK(limited(p, some, {slack, CapacityOf::all_ranks}, of_ranks) == floats_of(want.weights));
      CHECK(std::accumulate(of_ranks.begin(), of_ranks.end(), 0.f) == float(dropped));
      if (slack == 1) CHECK(dropped > 0);
    }
}

TEST_CASE("a capacity by each rank's own tokens is chapter 14's on each rank alone") {
  const Layer some = layer(5, 2);
  for (const std::size_t p : {2, 4}) {
    Floats want;
    for (std::size_t r = 0; r < p; ++r) {
      const Tensor<2> x = cut(all_tokens(), own_tokens(Tokens::none_on_rank_0, p, r));
      if (x.shape(0) == 0) continue;
      Routed own = route_each(x, some.whole());
      limit_to(capacity_of(x.shape(0), 2, 5, 1), own);
      want.insert(want.end(), own.weights.begin(), own.weights.end());
    }
    Floats of_ranks;
    CHECK(limited(p, some, {1, CapacityOf::own_tokens}, of_ranks) == want);
    CHECK(of_ranks[0] == 0);
  }
}

TEST_CASE("what is dropped is not sent, and the rest is chapter 14's within the bound") {
  // Chapter 14 also computes what it drops: its products have more rows, and perhaps other bits.
  const Layer some = layer(5, 2);
  const double bound = 2 * rounding(2 * C * F, 16);
  Routed want = route_each(all_tokens(), some.whole());
  const std::size_t dropped = limit_to(capacity_of(T, 2, 5, 1), want);
  ExpertsScratch scratch(T, C, F, 5, 2, Activation::swiglu);
  Tensor<2> y = empty(T, C);
  run_choices(all_tokens(), some.whole(), want.experts, want.weights, scratch, y);
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    CAPTURE(p);
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const Range own = own_tokens(Tokens::even, p, ranks.rank);
      const Tensor<2> x = cut(all_tokens(), own);
      const Mixture mixture = some.of_rank(ranks);
      Routed routed = route_each(x, mixture);
      limit_choices(ranks, {1, CapacityOf::all_ranks}, routed);
      Tensor<2> mine = empty(x.shape(0), C);
      const KeptExperts kept = parallel_experts_rows(ranks, x, mixture, routed, mine);
      double worst = 0;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const double off = std::abs(double(mine.data()[i]) - double(y(own.begin + i / C, i % C)));
        worst = std::isnan(off) ? 99 : std::max(worst, off);
      }
      return {float(worst), float(kept.exchange.sent()), float(kept.received.shape(0))};
    });
    CHECK(got.error == "");
    if (!got.error.empty()) return;
    Floats sums = {0, 0};
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] <= bound);
      sums[0] += of_rank[1], sums[1] += of_rank[2];
    }
    CHECK(sums == Floats{float(2 * T - dropped), float(2 * T - dropped)});
  }
}

}  // namespace t2t::parallel_experts_tests
