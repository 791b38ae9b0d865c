// Chapter 20: which rank has which experts, and how full that makes it.
#include "20_split_models/expert_parallel/expert_ranges.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "13_training/differences.hpp"
#include "20_split_models/expert_layer.hpp"
#include "20_split_models/expert_parallel/parallel_experts.hpp"
#include "support/refuses.hpp"

namespace t2t::parallel_experts_tests {

TEST_CASE("by hand: the first ranks have one expert more, and every expert has one rank") {
  const auto of_rank = [](std::size_t E, std::size_t ranks, std::size_t r) {
    const Range own = own_experts(E, ranks, r);
    return std::pair{own.begin, own.end};
  };
  CHECK(of_rank(8, 3, 0) == std::pair<std::size_t, std::size_t>{0, 3});
  CHECK(of_rank(8, 3, 1) == std::pair<std::size_t, std::size_t>{3, 6});
  CHECK(of_rank(8, 3, 2) == std::pair<std::size_t, std::size_t>{6, 8});
  for (std::size_t E = 1; E <= 9; ++E)
    for (std::size_t ranks = 1; ranks <= E; ++ranks) {
      std::size_t next = 0;
      for (std::size_t r = 0; r < ranks; ++r) {
        CHECK(own_experts(E, ranks, r).begin == next);
        next = own_experts(E, ranks, r).end;
        CHECK(own_experts(E, ranks, r).size() == E / ranks + (r < E % ranks ? 1 : 0));
      }
      CHECK(next == E);
    }
  REFUSES(own_experts(3, 4, 0), "ranks: wanted at most one for each of E = 3 experts, got 4");
  REFUSES(own_experts(3, 2, 2), "rank: wanted below the 2 ranks, got 2");
}

static Floats zipf(std::size_t E, double exponent) {
  Floats loads;
  for (std::size_t e = 0; e < E; ++e) loads.push_back(float(std::pow(double(e + 1), -exponent)));
  return loads;
}
static Floats renumbered(const Floats& loads, const Sizes& order) {
  Floats dealt;
  for (const std::size_t e : order) dealt.push_back(loads[e]);
  return dealt;
}

TEST_CASE("by hand: busy experts are dealt out like cards") {
  CHECK(dealt_out(Floats{5, 9, 1, 7, 3}, 2) == Sizes{1, 0, 2, 3, 4});  // 9, 5, 1 and 7, 3
  CHECK(dealt_out(Floats{1, 1, 1, 1}, 2) == Sizes{0, 2, 1, 3});
  CHECK(fullest_over_mean(Floats{3, 1, 0, 0}, 2) == 2);
  CHECK(fullest_over_mean(Floats{3, 0, 1, 0}, 2) == 1.5);
  // Loads 1/√i on 4 ranks: (1 + 1/√2) and (1 + 1/√5) times 4 over their sum, 4.3715; loads 1/i:
  // 1 + 1/2 and 1 + 1/5 times 4 over 761/280.
  const Floats half = zipf(8, 0.5), one = zipf(8, 1), even = zipf(8, 0);
  CHECK(fullest_over_mean(half, 4) == doctest::Approx(1.5620).epsilon(1e-4));
  CHECK(fullest_over_mean(renumbered(half, dealt_out(half, 4)), 4) ==
        doctest::Approx(1.3242).epsilon(1e-4));
  CHECK(fullest_over_mean(one, 4) == doctest::Approx(6 * 280. / 761));
  CHECK(fullest_over_mean(renumbered(one, dealt_out(one, 4)), 4) ==
        doctest::Approx(4.8 * 280 / 761));
  CHECK(fullest_over_mean(even, 4) == 1);
  REFUSES(fullest_over_mean(Floats{0, 0}, 2), "the sum of all loads: wanted above 0, got 0");
}

TEST_CASE(
    "a mixture whose experts are renumbered gives the same, but for softmax's order of sums") {
  const Layer some = layer(7, 3);
  const Sizes order = dealt_out(Floats{3, 9, 2, 7, 1, 8, 5}, 3);
  Layer dealt = some;
  for (std::size_t i = 0; i < order.size(); ++i) {
    dealt.weights.experts[i] = some.weights.experts[order[i]];
    xt::row(dealt.weights.router.floats(), long(i)) =
        xt::row(some.weights.router.floats(), long(order[i]));
  }
  const OnRanks got = on_ranks(3, [&](const Communicator& ranks) {
    const Tensor<2> x = cut(all_tokens(), own_tokens(Tokens::even, 3, ranks.rank));
    Floats both;
    for (const Layer& one : {some, dealt}) {
      const Mixture mixture = one.of_rank(ranks);
      Tensor<2> y = empty(x.shape(0), C);
      parallel_experts_rows(ranks, x, mixture, route_each(x, mixture), y);
      both.insert(both.end(), y.begin(), y.end());
    }
    return both;
  });
  CHECK(got.error == "");
  if (!got.error.empty()) return;
  for (const Floats& both : got.results)
    for (std::size_t i = 0, half = both.size() / 2; i < half; ++i)
      CHECK(std::abs(both[i] - both[half + i]) <= rounding(7, 16));
}

}  // namespace t2t::parallel_experts_tests
