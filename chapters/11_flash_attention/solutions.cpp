// The solutions to the problems on paper of docs/11_flash_attention.md.
#include "program/solutions.hpp"

#include <fmt/format.h>

#include <cmath>

#include "11_flash_attention/online_softmax.hpp"
#include "memory.hpp"
#include "program/print.hpp"

namespace t2t {

static Solution memory_of_scores() {
  const std::size_t H = 32, T = 8192;  // Llama 3 8B
  return {"memory of scores",
          fmt::format("32 · 8192² · 2 bytes = {}. m and l take 32 · 8192 · 2 · 4 bytes = {}.",
                      bytes_text(double(H * T * T * 2)), bytes_text(double(H * T * 2 * 4)))};
}

static Solution blocks_of_scores() {
  const std::size_t T = 4096, queries = 128, keys = 64, all = T / queries * (T / keys);
  std::size_t computed = 0, whole = 0;
  for (std::size_t t = 0; t < T; t += queries) {
    computed += (keys_seen(t, queries, T, T, Mask::causal).end + keys - 1) / keys;
    whole += keys_seen(t, T, T, Mask::causal).end / keys;  // each query of the block sees them
  }
  return {
      "blocks of scores",
      fmt::format(
          "2 + 4 + … + 64 = {} of {}, {:.1f} %. Two for each block of queries need the mask: {}.",
          computed, all, 100 * double(computed) / double(all), computed - whole)};
}

static Solution three_keys() {
  const float scores[] = {0, std::log(3.f), std::log(2.f)};
  const Tensor<2> values = {{12}, {4}, {6}};
  OnlineSoftmax so_far(1);
  std::string steps;
  for (std::size_t s = 0; s < 3; ++s) {
    take(so_far, scores[s], row(values, s));
    steps += fmt::format("{}{:.3g} and {:.3g}", s == 0 ? "" : ", ", so_far.sum, so_far.values(0));
  }
  return {"three keys",
          fmt::format("{}. The second key multiplies both by {:.3g}. out = o / l = {:.3g}.", steps,
                      std::exp(scores[0] - scores[1]), mean(so_far)(0))};
}

static OnlineSoftmax state(float highest, float sum, float values) {
  OnlineSoftmax made(1);
  made.highest = highest, made.sum = sum, made.values(0) = values;
  return made;
}

static Solution two_halves() {
  OnlineSoftmax first = state(0, 2, 4);
  const OnlineSoftmax second = state(std::log(2.f), 3, 18);
  const float plain = (mean(first)(0) + mean(second)(0)) / 2;
  join(first, second);
  return {"two halves",
          fmt::format("e^(0 - ln 2) = ½ halves the first half's sums: l = 1 + 3 = {:g}, o = 2 + 18 "
                      "= {:g}, out = {:g}. The plain mean would be {:g}.",
                      first.sum, first.values(0), mean(first)(0), plain)};
}

std::vector<Solution> solutions() {
  return {memory_of_scores(), blocks_of_scores(), three_keys(), two_halves()};
}

}  // namespace t2t
