// The solutions to the problems on paper of docs/18_experiments.md and docs/18_muon.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "18_experiments/muon/newton_schulz.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution apart_by_chance() {
  // Of the 20 ways to choose which 3 of 6 ranks belong to one side, 2 separate the sides.
  constexpr int ways = 6 * 5 * 4 / (3 * 2 * 1);
  return {
      "apart by chance",
      fmt::format("There are {} ways to say which three of the six losses are the first side's. "
                  "In 2 of them the sides don't overlap: {:g} %. With five seeds per side it would "
                  "be 2 of 252, {:.1f} %.",
                  ways, 100 * 2.0 / ways, 100 * 2.0 / 252)};
}

static Solution models_of_an_experiment() {
  const int sides = 4, rates = 6, seeds = 3;
  return {"models to train",
          fmt::format("{} sides · ({} rates + {} more seeds) = {} models. The sweep's best run is "
                      "the first of the three seeds.",
                      sides, rates, seeds - 1, sides * (rates + seeds - 1))};
}

static Solution fixed_points() {
  const NewtonSchulz n;
  const double a = n.a, b = n.b, c = n.c, root = std::sqrt(b * b - 4 * c * (a - 1));
  const double low = std::sqrt((-b - root) / (2 * c)), high = std::sqrt((-b + root) / (2 * c));
  const auto slope = [&](double s) { return a + 3 * b * s * s + 5 * c * s * s * s * s; };
  return {
      "fixed points",
      fmt::format("f(s) = s means s = 0, or a - 1 + b s² + c s⁴ = 0, a quadratic equation in "
                  "s². Its solutions are s = {:.3f} and s = {:.3f}. The slope f'(s) = a + 3b s² "
                  "+ 5c s⁴ is {:.2f} at 0, {:.2f} at {:.3f} and {:.2f} at {:.3f}. Each is larger "
                  "than 1 in size: near every fixed point, a step multiplies the distance to it "
                  "by more than 1, and the iteration cannot settle.",
                  low, high, a, slope(low), low, slope(high), high)};
}

static Solution operations_of_muon() {
  constexpr std::size_t m = 576, n = 1536;
  constexpr std::size_t step = 4 * m * m * n + 2 * m * m * m, all = 5 * step;
  return {"operations of a step",
          fmt::format("A = X·Xᵀ takes 2·m²·n, A² takes 2·m³, and the product with X takes 2·m²·n "
                      "operations. With m = 576 and n = 1,536, five steps take {} operations. "
                      "Training takes 6·m·n = {} operations per token, so Newton–Schulz costs as "
                      "much as {:.0f} tokens.",
                      with_commas(all), with_commas(6 * m * n), double(all) / double(6 * m * n))};
}

std::vector<Solution> solutions() {
  return {apart_by_chance(), models_of_an_experiment(), fixed_points(), operations_of_muon()};
}

}  // namespace t2t
