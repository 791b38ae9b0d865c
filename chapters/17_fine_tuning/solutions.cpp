// The solutions to the problems on paper of docs/17_fine_tuning.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include "program/print.hpp"

namespace t2t {

static Solution largest_rank() {
  constexpr std::size_t out = 576, in = 1536;
  const std::size_t rank = (out * in - 1) / (out + in);
  return {"when it pays",
          fmt::format("r·(576 + 1,536) < 576·1,536 = {}, so up to r = {}. Above that, A and B have "
                      "more elements than the matrix.",
                      with_commas(out * in), rank)};
}

static Solution first_two_steps() {
  // W₀ = 1, A = 2, B = 0, s = 1; the loss is W, so dW = 1, and a step subtracts 0.1 of a gradient.
  const double a = 2, b = -0.1 * a, second_a = a - 0.1 * b, second_b = b - 0.1 * a;
  return {"first two steps",
          fmt::format("Step 1: dB = dW·A = 2, dA = B·dW = 0, so B = {:g}, A = {:g} and W = {:g}. "
                      "Step 2: dB = 2, dA = {:g}, so B = {:g}, A = {:g} and W = {:g}.",
                      b, a, 1 + b * a, b, second_b, second_a, 1 + second_b * second_a)};
}

std::vector<Solution> solutions() { return {largest_rank(), first_two_steps()}; }

}  // namespace t2t
