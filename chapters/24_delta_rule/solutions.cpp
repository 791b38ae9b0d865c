// The solutions to the problems on paper of docs/24_delta_rule.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "24_delta_rule/chunks/chunk_solve.hpp"
#include "24_delta_rule/delta_costs.hpp"
#include "24_delta_rule/delta_rule.hpp"
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

std::vector<Solution> solutions() {
  return {third_token(), solve_by_hand(), when_a_state_is_smaller(), hybrid()};
}

}  // namespace t2t
