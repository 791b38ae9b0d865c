// The solutions to the problems on paper of docs/04_causal_attention.md.
#include "program/solutions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "04_causal_attention/fast/attend.hpp"
#include "04_causal_attention/softmax.hpp"
#include "program/print.hpp"

namespace t2t {

static Tensor<2> scores() { return {{0, std::log(2.f), std::log(5.f)}}; }  // [1, 3]

static std::string weights_of(const Tensor<2>& scores) {
  return fmt::format("{:.3g}", fmt::join(row(softmax(scores), 0), ", "));
}

static Solution three_scores() {
  return {"three scores",
          fmt::format(
              "1, 2 and 5 of 8: {}. Adding 100 multiplies all exponentials by e^100, so nothing "
              "changes: {}. Doubling squares them, 1, 4 and 25 of 30: {}.",
              weights_of(scores()), weights_of(scores() + 100), weights_of(2 * scores()))};
}

static Solution hidden_key() {
  const Tensor<2> mask = attention_mask(3, 3, Mask::causal);
  const Tensor<2> masked = scores() + xt::view(mask, xt::range(1, 2), xt::all());
  const Tensor<2> all = softmax(scores());
  return {"masked key",
          fmt::format("{}. Set to 0 after softmax, the third weight would leave {:.3g} and {:.3g}, "
                      "with the sum {:.3g}.",
                      weights_of(masked), all(0, 0), all(0, 1), all(0, 0) + all(0, 1))};
}

static Solution window() {
  const std::size_t T = 8192, W = 4096;
  const double causal = pairs_seen(T, T, Mask::causal), few = pairs_seen(T, T, Mask::sliding(W));
  return {"window",
          fmt::format("Without the window 8192 · 8193 / 2 = {}. With it the first 4096 queries see "
                      "4096 · 4097 / 2 keys and the others 4096 each: {}, still {:.0f} %.",
                      with_commas(std::size_t(causal)), with_commas(std::size_t(few)),
                      100 * few / causal)};
}

static Solution number_of_heads() {
  const std::size_t C = 4096, S = 4096;
  const auto multiplications = [&](std::size_t H) { return H * 2 * S * (C / H); };
  return {"number of heads", fmt::format("32 · 2 · 4096 · 128 = {}. One head makes 2 · 4096 · 4096 "
                                         "= {}, as many. The four projections make 4 · 4096² = {}.",
                                         with_commas(multiplications(32)),
                                         with_commas(multiplications(1)), with_commas(4 * C * C))};
}

std::vector<Solution> solutions() {
  return {three_scores(), hidden_key(), window(), number_of_heads()};
}

}  // namespace t2t
