// The solutions to the problems on paper of docs/18_experiments.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

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

std::vector<Solution> solutions() { return {apart_by_chance(), models_of_an_experiment()}; }

}  // namespace t2t
