// The solutions to the problems on paper of docs/25_sinks.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "program/print.hpp"

namespace t2t {

static Solution half_of_the_weight() {
  constexpr std::size_t window = 128, context = 131'072;
  return {"half of the weight",
          fmt::format("The keys' exponentials sum to S when all scores are 0, and the sink's is "
                      "e^σ. Half of the weight means e^σ = S, σ = ln S: {:.2f} for {} keys and "
                      "{:.2f} for {} keys.",
                      std::log(double(window)), window, std::log(double(context)),
                      with_commas(context))};
}

static Solution counted_twice() {
  const double exps[] = {1, 2}, sink = 3, values[] = {6, 12};
  const double sum = exps[0] * values[0] + exps[1] * values[1];
  const double once = sum / (exps[0] + exps[1] + sink),
               twice = sum / (exps[0] + exps[1] + 2 * sink);
  return {
      "counted twice",
      fmt::format("The weighted sum of the values is 1·6 + 2·12 = {:g}. With the sink once, the "
                  "exponentials sum to 1 + 2 + 3 = 6, and the head returns {:g}. With the sink "
                  "in both splits they sum to 9, and it returns {:.2f}. Every query's result is "
                  "too small, and nothing is infinite or NaN.",
                  sum, once, twice)};
}

static Solution rescaled_afterwards() {
  const double out = 10, lse = std::log(3.0);
  const auto with = [&](double sink) { return out / (1 + std::exp(sink - lse)); };
  return {"rescaled afterwards",
          fmt::format("sigmoid(lse - σ) is 1/2 for σ = ln 3 and 3/(3 + 9) = 1/4 for σ = ln 9: the "
                      "head returns {:g} and {:g}.",
                      with(std::log(3.0)), with(std::log(9.0)))};
}

std::vector<Solution> solutions() {
  return {half_of_the_weight(), counted_twice(), rescaled_afterwards()};
}

}  // namespace t2t
