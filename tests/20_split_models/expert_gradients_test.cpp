// Chapter 20: the gradients of a layer's experts on several ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "13_training/differences.hpp"
#include "14_mixture_of_experts/training/balance.hpp"
#include "20_split_models/expert_layer.hpp"
#include "20_split_models/expert_parallel/exchange_costs.hpp"
#include "20_split_models/expert_parallel/expert_capacity.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"
#include "support/refuses.hpp"

namespace t2t::parallel_experts_tests {

static void append(Floats& to, const Weight& w) {
  to.insert(to.end(), w.floats().begin(), w.floats().end());
}
static void append(Floats& to, const std::vector<FeedForwardWeights>& experts) {
  for (const FeedForwardWeights& w : experts)
    append(to, w.w_gate), append(to, w.w_up), append(to, w.w_down);
}

/// What a backward pass returns.
struct Learned {
  Floats dx, router, experts;
};
static Tensor<2> all_dy() { return numbers(9, 2, 0, T, C); }
static Learned learned_on_one_rank(const Layer& some, double slack) {
  const Mixture mixture = some.whole();
  Routed routed = route_each(all_tokens(), mixture);
  if (slack > 0) limit_to(capacity_of(T, mixture.settings.k, mixture.E(), slack), routed);
  ZeroGradients gradients(mixture);
  Tensor<2> dx = empty(T, C);
  experts_backward(all_tokens(), mixture, routed, {}, all_dy(), dx, gradients.view());
  Learned all = {floats_of(dx), {}, {}};
  append(all.router, gradients.router), append(all.experts, gradients.experts);
  return all;
}

/// The ranks' dx and gradients of experts, one rank after the other, and the sum of the router's.
static Learned learned_on(std::size_t p, const Layer& some, double slack, Tokens how,
                          std::string& error) {
  const std::size_t of_expert = 3 * C * F, of_router = some.whole().router.size();
  const OnRanks got = on_ranks(p, [&](const Communicator& ranks) {
    const Range own = own_tokens(how, p, ranks.rank);
    const Tensor<2> x = cut(all_tokens(), own);
    const Mixture mixture = some.of_rank(ranks);
    Routed routed = route_each(x, mixture);
    limit_choices(ranks, {slack, CapacityOf::all_ranks}, routed);
    Tensor<2> y = empty(x.shape(0), C), dx = y;
    const KeptExperts kept = parallel_experts_rows(ranks, x, mixture, routed, y);
    ZeroGradients gradients(mixture);
    parallel_experts_backward(ranks, x, mixture, kept, cut(all_dy(), own), dx, gradients.view());
    Floats all = floats_of(dx);
    append(all, gradients.experts), append(all, gradients.router);
    return all;
  });
  error = got.error;
  Learned all = {{}, Floats(of_router), {}};
  if (!error.empty()) return all;
  for (std::size_t r = 0; r < p; ++r) {
    auto from = got.results[r].begin();
    const auto take = [&](Floats& to, std::size_t n) {
      to.insert(to.end(), from, from + std::ptrdiff_t(n));
      from += std::ptrdiff_t(n);
    };
    take(all.dx, own_tokens(how, p, r).size() * C);
    take(all.experts, own_experts(some.whole().E(), p, r).size() * of_expert);
    for (float& element : all.router) element += *from++;
  }
  return all;
}

/// The largest difference; 99 for a NaN, and for lists of other lengths.
static double difference(const Floats& got, const Floats& want) {
  if (got.size() != want.size()) return 99;
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(double(got[i]) - double(want[i]));
    worst = std::isnan(off) ? 99 : std::max(worst, off);
  }
  return worst;
}

TEST_CASE(
    "gradients are chapter 14's on one rank: the experts' bits, the others within the bound") {
  const Layer cases[] = {layer(5, 1), layer(7, 3), layer(6, 2, true)};
  // The router's gradient is a sum over T tokens of a weight's gradient, a sum of C products, times
  // an element of x; the results in it are off by their own C and F. An element of dx has fewer
  // terms. No element is above 16.
  const double bound = 2 * rounding(T * (C + F), 16);
  for (const Layer& some : cases) {
    const Learned want = learned_on_one_rank(some, 0);
    for (std::size_t p = 1; p <= most_ranks; ++p)
      for (const Tokens how : {Tokens::even, Tokens::none_on_rank_0}) {
        CAPTURE(some.whole().E());
        CAPTURE(p);
        CAPTURE(int(how));
        std::string error;
        const Learned got = learned_on(p, some, 0, how, error);
        CHECK(error == "");
        if (!error.empty()) return;
        CHECK((got.experts == want.experts));
        CHECK(difference(got.router, want.router) <= bound);
        CHECK(difference(got.dx, want.dx) <= bound);
      }
  }
}

TEST_CASE("with a capacity the gradients are chapter 14's within the bound") {
  const Layer some = layer(5, 2);
  const Learned want = learned_on_one_rank(some, 1);
  const double bound = 2 * rounding(T * (C + F), 16);
  for (const std::size_t p : {1, 3, 5}) {
    std::string error;
    const Learned got = learned_on(p, some, 1, Tokens::even, error);
    CHECK(error == "");
    if (!error.empty()) return;
    CHECK(difference(got.experts, want.experts) <= bound);
    CHECK(difference(got.router, want.router) <= bound);
    CHECK(difference(got.dx, want.dx) <= bound);
  }
}

TEST_CASE("backward sends as many rows as forward, and no counts") {
  const Layer some = layer(7, 3);
  for (std::size_t p = 1; p <= most_ranks; ++p) {
    const OnRanks got = on_ranks(p, [&](const Communicator& ranks) -> Floats {
      const Range own = own_tokens(Tokens::even, p, ranks.rank);
      const Tensor<2> x = cut(all_tokens(), own);
      const Mixture mixture = some.of_rank(ranks);
      Tensor<2> y = empty(x.shape(0), C);
      const KeptExperts kept = parallel_experts_rows(ranks, x, mixture, route_each(x, mixture), y);
      ZeroGradients gradients(mixture);
      const Sent before = sent();
      parallel_experts_backward(ranks, x, mixture, kept, cut(all_dy(), own), y, gradients.view());
      const Sent now = sent() - before;
      const Sent want = rows_cost(counts_of_ranks(ranks, kept.exchange.home, 7), C, ranks.rank);
      return {float(now.messages), float(now.bytes), float(want.messages), float(want.bytes)};
    });
    CHECK(got.error == "");
    if (!got.error.empty()) return;
    for (const Floats& of_rank : got.results) {
      CHECK(of_rank[0] == of_rank[2]);
      CHECK(of_rank[1] == of_rank[3]);
    }
  }
}

TEST_CASE("wrong calls are refused by name, before anything is sent") {
  const Communicator alone = {all_ranks().handle, 0, 1}, first = {all_ranks().handle, 0, 2};
  Layer some = layer(4, 2);
  const Tensor<2> x = all_tokens();
  const Routed routed = route_each(x, some.whole());
  Tensor<2> y = empty(T, C), narrow = empty(T, C - 1);
  REFUSES(parallel_experts_rows(first, x, some.whole(), routed, y),
          "own experts: wanted 2 of E = 4 on rank 0 of 2, got 4");
  REFUSES(parallel_experts_rows({all_ranks().handle, 0, 5}, x, some.whole(), routed, y),
          "ranks: wanted at most one for each of E = 4 experts, got 5");
  REFUSES(parallel_experts_rows(alone, x, some.whole(), routed, narrow),
          "y: wanted shape [29, 12], got [29, 11]");
  REFUSES(parallel_experts_rows(alone, narrow, some.whole(), routed, narrow),
          "router: wanted shape [4, 11], got [4, 12]");
  some.weights.shared = network(1000, C, 4);
  REFUSES(parallel_experts_rows(alone, x, some.whole(), routed, y),
          "shared: wanted experts alone, got a network beside them");
  some.weights.shared = {};
  KeptExperts kept;
  CHECK_NOTHROW(kept = parallel_experts_rows(alone, x, some.whole(), routed, y));
  ZeroGradients gradients(some.whole());
  REFUSES(parallel_experts_backward(alone, x, some.whole(), kept, narrow, y, gradients.view()),
          "dy: wanted shape [29, 12], got [29, 11]");
  some.weights.activation = Activation::gelu;
  REFUSES(parallel_experts_backward(alone, x, some.whole(), kept, x, y, gradients.view()),
          "experts to train: wanted gated networks, got others");
  REFUSES(to_home(alone, kept.exchange, narrow), "results: wanted shape [58, 11], got [29, 11]");
}

}  // namespace t2t::parallel_experts_tests
