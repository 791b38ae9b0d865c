// The solutions to the problems on paper of docs/03_rope.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "03_rope/rope.hpp"
#include "03_rope/scaling/rope_scaling.hpp"
#include "program/print.hpp"

namespace t2t {

static double degrees(double radians) { return radians * 180 / std::numbers::pi; }

static Solution slowest_pair() {
  const double llama_2 = rope_frequencies(128, 10000).back();
  const double llama_3 = rope_frequencies(128, 500000).back();
  const std::size_t turn = std::size_t(std::lround(2 * std::numbers::pi / llama_3));
  return {
      "slowest pair",
      fmt::format(
          "4096 · 10,000^(-126/128) = {:.3f} radians, or {:.1f} degrees; 8192 · 500,000^(-126/128) "
          "= {:.4f}, or {:.2f} degrees. Llama 3 needs {} positions for a full turn.",
          4096 * llama_2, degrees(4096 * llama_2), 8192 * llama_3, degrees(8192 * llama_3),
          with_commas(turn))};
}

/// The first row, with three decimals at most and no −0.
static std::string numbers(const Tensor<2>& x) {
  std::string text;
  for (const float number : row(x, 0))
    text += fmt::format("{}{:g}", text.empty() ? "" : ", ",
                        std::round(double(number) * 1000) / 1000 + 0.0);
  return "(" + text + ")";
}

static Solution two_pairings() {
  const RopeTable table = rope_table(3, {std::numbers::pi / 2, std::numbers::pi / 6});
  const Tensor<2> x = {{2, 0, 1, 0}};
  return {"two pairings", fmt::format("The angles are 180 and 60 degrees. Neighbours are (2, 0) "
                                      "and (1, 0): {}. Halves are (2, 1) and (0, 0): {}.",
                                      numbers(rope(x, 4, table, 2, Pairing::neighbours)),
                                      numbers(rope(x, 4, table, 2, Pairing::halves)))};
}

static Solution equal_vectors() {
  const RopeTable table = rope_table(1008, rope_frequencies(2));
  const Tensor<2> x = {{1, 0}};
  const auto score = [&](std::size_t query, std::size_t key) {
    const Tensor<2> q = rope(x, 2, table, query, Pairing::neighbours);
    const Tensor<2> k = rope(x, 2, table, key, Pairing::neighbours);
    return std::inner_product(q.begin(), q.end(), k.begin(), 0.0) / std::sqrt(2.0);
  };
  return {"equal vectors", fmt::format("cos(2) / √2 = {:.3f}; at 1007 and 1005 it is {:.3f} as "
                                       "well. Even equal vectors can have a negative score.",
                                       score(7, 5), score(1007, 1005))};
}

static Solution four_times_the_context() {
  const Frequencies trained = rope_frequencies(128);
  const Frequencies linear = linear_scaling(trained, 4), ntk = ntk_scaling(128, 10000, 4);
  const std::size_t theta = std::size_t(std::lround(std::pow(ntk[1], -64)));
  return {"four times the context",
          fmt::format(
              "Linear scaling multiplies the fastest by {:g} and the slowest by {:g}. NTK-aware "
              "scaling, with θ = 10,000 · 4^(128/126) = {}, multiplies them by {:g} and {:g}.",
              linear.front(), linear.back() / trained.back(), with_commas(theta), ntk.front(),
              ntk.back() / trained.back())};
}

std::vector<Solution> solutions() {
  return {slowest_pair(), two_pairings(), equal_vectors(), four_times_the_context()};
}

}  // namespace t2t
