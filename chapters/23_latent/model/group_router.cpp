#include "23_latent/model/group_router.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float closed = -std::numeric_limits<float>::infinity();

void expect_grouped(const GroupedRouting& routing, std::size_t E, std::size_t bias) {
  const auto& [router, groups, open, scale] = routing;
  expect_router(router, E, bias);
  expect(groups >= 1 && E % groups == 0, "groups", fmt::format("a divisor of E = {}", E), groups);
  expect(open >= 1 && open <= groups, "open, the groups of a token",
         fmt::format("1 to groups = {}", groups), open);
  expect(open * (E / groups) >= router.k, "k, the experts of a token",
         fmt::format("at most the {} of {} open groups", open * (E / groups), open), router.k);
  expect(scale > 0 && std::isfinite(scale), "scale, the factor of the weights",
         "a finite number above 0", scale);
}

// [groups]
/// What a group's experts are worth to a token, from their p + bias.
static float worth(ConstRow choice, Scoring scoring) {
  float best = closed, second = closed;
  for (const float c : choice) {
    second = std::max(second, std::min(best, c));
    best = std::max(best, c);
  }
  return scoring == Scoring::softmax || choice.size() == 1 ? best : best + second;
}

/// The bias of each expert, −infinity in a group that is not open to the token: [E].
static std::vector<float> bias_in_open_groups(ConstRow p, const GroupedRouting& routing,
                                              ConstRow bias) {
  const std::size_t E = p.size(), groups = routing.groups, size = E / groups;
  std::vector<float> choice(p.begin(), p.end()), worths(groups), masked(E, closed);
  for (std::size_t e = 0; e < bias.size(); ++e) choice[e] += bias[e];
  for (std::size_t g = 0; g < groups; ++g)
    worths[g] = worth(ConstRow(choice).subspan(g * size, size), routing.router.scoring);

  std::vector<std::size_t> order(groups);  // the best group first
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t g) { return worths[g]; });
  for (std::size_t i = 0; i < routing.open; ++i)
    for (std::size_t e = order[i] * size; e < (order[i] + 1) * size; ++e)
      masked[e] = bias.empty() ? 0 : bias[e];
  return masked;
}
// [/groups]

Routed route_in_groups(const Tensor<2>& x, const Tensor<2>& router, const GroupedRouting& routing,
                       ConstRow bias) {
  const std::size_t T = x.shape(0), E = router.shape(0), k = routing.router.k;
  expect_grouped(routing, E, bias.size());
  Routed routed{empty(T, E), empty(T, E), std::vector<std::size_t>(T * k), empty(T, k)};
  for (std::size_t t = 0; t < T; ++t) {
    // A product of one row each: beside other rows it could round differently.
    matmul_bt(ConstMatrix(x).rows_from(t, 1), router, Matrix(routed.scores).rows_from(t, 1));
    const ConstRow scores = row(std::as_const(routed.scores), t);
    const Row p = row(routed.p, t), weights = row(routed.weights, t);
    const std::span<std::size_t> experts = std::span(routed.experts).subspan(t * k, k);

    std::ranges::copy(scores, p.begin());
    if (!route_row(p, routing.router, bias, experts, weights))
      throw std::invalid_argument(
          fmt::format("scores of token {}: wanted finite numbers, got others", t));
    if (routing.open < routing.groups) {  // p is known now, and with it which groups are open
      const std::vector<float> masked = bias_in_open_groups(p, routing, bias);
      std::ranges::copy(scores, p.begin());
      route_row(p, routing.router, masked, experts, weights);
    }
    for (float& weight : weights) weight *= routing.scale;
  }
  return routed;
}

}  // namespace t2t
