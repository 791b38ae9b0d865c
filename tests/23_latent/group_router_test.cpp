// What must be true of a router of groups: cases by hand, and that it is chapter 14's with one.
#include "23_latent/model/group_router.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "13_training/differences.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::group_router_test {

using std::size_t;
using Experts = std::vector<size_t>;

/// A router that gives x itself as scores.
static Tensor<2> identity(size_t E) {
  Tensor<2> router = zeros(E, E);
  for (size_t e = 0; e < E; ++e) router(e, e) = 1;
  return router;
}
static Routed routed_of(const Tensor<2>& scores, const GroupedRouting& routing,
                        const Tensor<1>& bias = {}) {
  return route_in_groups(scores, identity(scores.shape(1)), routing, row(bias));
}

// Six experts in three groups. Their largest p are 0.9, 0.6 and 0.7, the sums of two 1, 1.1 and
// 0.9.
static const std::vector<float> six = {0.9f, 0.1f, 0.6f, 0.5f, 0.7f, 0.2f};
static Tensor<2> scores_for(Scoring scoring) {
  Tensor<2> scores = empty(1, 6);
  for (size_t e = 0; e < 6; ++e)
    scores(0, e) = std::log(scoring == Scoring::softmax ? six[e] : six[e] / (1 - six[e]));
  return scores;
}

TEST_CASE("by hand: a group of softmax is worth its largest, one of sigmoid the sum of two") {
  // The six add up to 3, which softmax divides by.
  const Routed softmax =
      routed_of(scores_for(Scoring::softmax),
                {.router = {.k = 2, .normalized = false}, .groups = 3, .open = 1, .scale = 3});
  CHECK(softmax.experts == Experts{0, 1});
  CHECK(all_close(softmax.weights, {{0.9f, 0.1f}}, 1e-6));
  CHECK(all_close(softmax.p, {{0.3f, 0.1f / 3, 0.2f, 0.5f / 3, 0.7f / 3, 0.2f / 3}}, 1e-6));
  const Routed sigmoid = routed_of(
      scores_for(Scoring::sigmoid),
      {.router = {.k = 2, .scoring = Scoring::sigmoid}, .groups = 3, .open = 1, .scale = 2.5f});
  CHECK(sigmoid.experts == Experts{2, 3});
  CHECK(all_close(sigmoid.weights, {{2.5f * 6 / 11, 2.5f * 5 / 11}}, 1e-6));
  CHECK(all_close(sigmoid.p, {{0.9f, 0.1f, 0.6f, 0.5f, 0.7f, 0.2f}}, 1e-6));
  CHECK(all_close(sigmoid.scores, scores_for(Scoring::sigmoid), 0));
}

TEST_CASE("by hand: two open groups, whose best experts are chosen wherever they are") {
  const GroupedRouting two = {
      .router = {.k = 3, .scoring = Scoring::sigmoid, .normalized = false}, .groups = 3, .open = 2};
  const Routed routed = routed_of(scores_for(Scoring::sigmoid), two);
  CHECK(routed.experts == Experts{0, 2, 3});  // and not 4, with 0.7: its group is the third
  CHECK(all_close(routed.weights, {{0.9f, 0.6f, 0.5f}}, 1e-6));
}

TEST_CASE("by hand: the bias opens groups and chooses experts, but is no part of a weight") {
  const GroupedRouting one = {
      .router = {.k = 2, .scoring = Scoring::sigmoid, .normalized = false}, .groups = 3, .open = 1};
  const Routed third = routed_of(scores_for(Scoring::sigmoid), one, {0, 0, 0, 0, 0, 0.5f});
  CHECK(third.experts == Experts{4, 5});  // 0.7 + 0.7 is the largest sum, the first index wins
  CHECK(all_close(third.weights, {{0.7f, 0.2f}}, 1e-6));
  const Routed order = routed_of(scores_for(Scoring::sigmoid), one, {0, 0, 0, 0.25f, 0, 0});
  CHECK(order.experts == Experts{3, 2});  // 0.75 before 0.6
  CHECK(all_close(order.weights, {{0.5f, 0.6f}}, 1e-6));
  // With all p + bias below 0, experts of closed groups, if they counted as 0, would win.
  const Routed below = routed_of(scores_for(Scoring::sigmoid), one, {-2, -2, -2, -2, -2, -2});
  CHECK(below.experts == Experts{2, 3});
}

TEST_CASE("of equal groups and experts, those with the lower index are chosen") {
  const GroupedRouting one = {.router = {.k = 2}, .groups = 2, .open = 1};
  CHECK(routed_of(zeros(1, 4), one).experts == Experts{0, 1});
  CHECK(routed_of({{0, 0, 0, 1}}, one).experts == Experts{3, 2});
}

TEST_CASE("with one group, or all groups open, it is chapter 14's router times scale") {
  const size_t T = 9, C = 7, E = 12;
  const Tensor<2> x = numbers(1, 2, 0, T, C), router = numbers(2, 2, 0, E, C);
  const Tensor<1> bias = numbers(3, 0.5f, 0, E);
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid})
    for (const size_t groups : {1, 3, 4}) {
      CAPTURE(groups);
      const RouterSettings settings{.k = 4, .scoring = scoring, .normalized = groups == 3};
      const GroupedRouting all_open = {
          .router = settings, .groups = groups, .open = groups, .scale = 4};
      // A token alone: beside others its scores could round differently.
      for (size_t t = 0; t < T; ++t) {
        const Tensor<2> token = xt::view(x, xt::range(t, t + 1), xt::all());
        const Routed want = route(token, router, settings, row(bias));
        const Routed got = route_in_groups(token, router, all_open, row(bias));
        CHECK(got.experts == want.experts);
        CHECK(all_close(got.weights, Tensor<2>(4 * want.weights), 0));
        CHECK(all_close(got.p, want.p, 0));
      }
    }
}

TEST_CASE("chosen experts lie in open groups only, and a token's routing is its own") {
  // The second has DeepSeek-V3's sizes.
  for (const auto& [E, groups, open, k] :
       {std::array<size_t, 4>{12, 4, 2, 5}, std::array<size_t, 4>{256, 8, 4, 8}}) {
    const size_t T = 40, C = 5, experts = E, most = open;
    CAPTURE(experts);
    const Tensor<2> x = numbers(4, 2, 0, T, C), router = numbers(5, 2, 0, E, C);
    const GroupedRouting routing = {
        .router = {.k = k, .scoring = Scoring::sigmoid}, .groups = groups, .open = open};
    const Routed all = route_in_groups(x, router, routing);
    std::vector<size_t> uses(groups);
    for (size_t t = 0; t < T; ++t) {
      const Experts chosen(&all.experts[t * k], &all.experts[t * k] + k);
      std::set<size_t> used;
      for (const size_t e : chosen) used.insert(e / (E / groups));
      for (const size_t g : used) ++uses[g];
      CHECK(used.size() <= most);
      CHECK(std::set(chosen.begin(), chosen.end()).size() == chosen.size());
      const Routed alone = route_in_groups(rows_of(x, t, 1), router, routing);
      CHECK(chosen == alone.experts);
      CHECK(all_close(rows_of(all.weights, t, 1), alone.weights, 0));
    }
    for (const size_t count : uses) CHECK(count > 0);
  }
}

TEST_CASE("impossible groups are refused") {
  const auto refused = [](const GroupedRouting& routing, const char* message) {
    REFUSES(routed_of(zeros(1, 6), routing), message);
  };
  refused({.router = {.k = 7}}, "k, the experts of a token: wanted 1 to E = 6, got 7");
  refused({.router = {.k = 1}, .groups = 4}, "groups: wanted a divisor of E = 6, got 4");
  refused({.router = {.k = 1}, .groups = 0}, "groups: wanted a divisor of E = 6, got 0");
  refused({.router = {.k = 1}, .groups = 3, .open = 4},
          "open, the groups of a token: wanted 1 to groups = 3, got 4");
  refused({.router = {.k = 1}, .groups = 3, .open = 0},
          "open, the groups of a token: wanted 1 to groups = 3, got 0");
  refused({.router = {.k = 3}, .groups = 3, .open = 1},
          "k, the experts of a token: wanted at most the 2 of 1 open groups, got 3");
  refused({.router = {.k = 1}, .scale = 0},
          "scale, the factor of the weights: wanted a finite number above 0, got 0");
  REFUSES(routed_of(zeros(1, 6), {.router = {.k = 1}}, {1, 2}),
          "elements of the bias: wanted 0 or E = 6, got 2");
  Tensor<2> scores = zeros(2, 6);
  scores(1, 3) = std::numeric_limits<float>::quiet_NaN();
  REFUSES(routed_of(scores, {.router = {.k = 2}, .groups = 3, .open = 2}),
          "scores of token 1: wanted finite numbers, got others");
}

}  // namespace t2t::group_router_test
