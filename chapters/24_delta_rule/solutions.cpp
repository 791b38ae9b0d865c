// The solutions to the problems on paper of docs/24_delta_rule.md, 24_recall.md and
// 24_qwen3_next.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "24_delta_rule/channels/channel_backward.hpp"
#include "24_delta_rule/chunks/chunk_solve.hpp"
#include "24_delta_rule/delta_costs.hpp"
#include "24_delta_rule/delta_rule.hpp"
#include "24_delta_rule/qwen3_next/load_qwen3_next.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution third_token() {
  const float half = std::log(0.5f);
  const DeltaTokens tokens{{{1, 0}}, {{1, 0}}, {{2}}, {half}, {0.5f}};
  Tensor<2> state = {{1.12f}, {0.16f}};
  const Tensor<2> o = delta_recurrence(tokens, StateRule::correct, state);
  return {"a third token",
          fmt::format("S′ = (0.56, 0.08), which holds 0.56 at k. u = ½·(2 − 0.56) = 0.72, and S = "
                      "({:.2f}, {:.2f}). o = {:.2f}.",
                      state(0, 0), state(1, 0), o(0, 0))};
}

static Solution solve_by_hand() {
  const Tensor<2> a = {{0, 0, 0}, {0.5f, 0, 0}, {1, 2, 0}}, x = {{4}, {3}, {10}};
  const Tensor<2> u = solve_lower(a, x);
  return {"a solve by hand",
          fmt::format("u_0 = 4, u_1 = 3 − ½·4 = {:g}, u_2 = 10 − 1·4 − 2·1 = {:g}. What lies on "
                      "the diagonal of A or above it is not read.",
                      u(1, 0), u(2, 0))};
}

static Solution when_a_state_is_smaller() {
  const HybridSizes sizes;
  const std::size_t of_layer = state_bytes(sizes, 0) / sizes.layers,
                    of_token = cache_bytes(sizes, 1, 1) / sizes.layers;
  return {"when a state is smaller",
          fmt::format("A layer's state and convolution rows are {} bytes, a token in a layer's "
                      "cache {}. From {} tokens on the state is smaller.",
                      with_commas(of_layer), with_commas(of_token),
                      with_commas(of_layer / of_token + 1))};
}

static Solution hybrid() {
  const HybridSizes sizes;
  const double hybrid = double(state_bytes(sizes, 4)) + double(cache_bytes(sizes, 4, 262144));
  return {
      "one layer in four",
      fmt::format("12 layers cache {} bytes per token, 6 GiB in all, and 36 layers have {} of "
                  "state. Together that is {}; if all layers attended, it would be {}.",
                  with_commas(cache_bytes(sizes, 4, 1)), bytes_text(double(state_bytes(sizes, 4))),
                  bytes_text(hybrid), bytes_text(double(cache_bytes(sizes, 1, 262144))))};
}

static Solution channel_gates() {
  const float half = std::log(0.5f);
  const ChannelTokens tokens{{{1, 3}}, {{2, 1}}, {{3}}, {{half, 0}}};
  Tensor<2> state = {{8}, {5}};
  const ChannelGradients d = channel_backward(tokens, state, {{1}}, {{0}, {0}});
  const Tensor<2> o = channel_recurrence(tokens, state);
  return {"two gates in a head",
          fmt::format("S = (½·8 + 2·3, 5 + 1·3) = ({:g}, {:g}), and o = {:g} + 3·{:g} = {:g}. "
                      "dq = ({:g}, {:g}) and dk = ({:g}, {:g}), so dg = ({:g}, {:g}): what is "
                      "left of the old state in o, channel by channel.",
                      state(0, 0), state(1, 0), state(0, 0), state(1, 0), o(0, 0), d.tokens.q(0, 0),
                      d.tokens.q(0, 1), d.tokens.k(0, 0), d.tokens.k(0, 1),
                      std::round(d.tokens.g(0, 0)), std::round(d.tokens.g(0, 1)))};
}

static Solution rows_in_groups() {
  Tensor<2> rows = empty(12, 1);
  for (std::size_t r = 0; r < 12; ++r) rows(r, 0) = float(r);
  const std::vector<Tensor<2>> parts = parts_of_groups(rows, 2, {3, 3});
  return {"rows in groups",
          fmt::format("Head 4 is the second of group 1. Each group has 3 rows of β, then 3 of the "
                      "decay: β of head 4 is row 6 + 1 = {:g}, its decay row 6 + 3 + 1 = {:g}.",
                      parts[0](4, 0), parts[1](4, 0))};
}

std::vector<Solution> solutions() {
  return {third_token(), solve_by_hand(), when_a_state_is_smaller(),
          hybrid(),      channel_gates(), rows_in_groups()};
}

}  // namespace t2t
