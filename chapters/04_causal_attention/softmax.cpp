#include "04_causal_attention/softmax.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

void refuse_masked_row(std::size_t row) {
  throw std::invalid_argument(
      fmt::format("softmax: row {} is all -infinity: a mask that hides every key", row));
}

/// A row with a NaN is not masked: all of its weights become NaN.
bool all_masked(ConstRow scores) {
  return std::ranges::all_of(scores, [](float score) { return score == -infinity; });
}

/// Softmax along the last axis; keep_dims keeps that axis, with length 1. If N = 2, scores has one
/// head, [T, S], as in the comments at the right. If N = 3, it has H heads, [H, T, S].
template <std::size_t N>
static Tensor<N> softmax_formula(const Tensor<N>& scores) {
  const Tensor<N> highest = xt::amax(scores, {N - 1}, xt::keep_dims);  // [T, 1]
  const Tensor<N> exps = xt::exp(scores - highest);                    // [T, S]
  const Tensor<N> sum = xt::sum(exps, {N - 1}, xt::keep_dims);         // [T, 1]

  const std::size_t S = scores.shape(N - 1);
  for (std::size_t first = 0; first < scores.size(); first += S)
    if (all_masked({scores.data() + first, S})) refuse_masked_row(first / S);
  return exps / sum;  // [T, S]
}

Tensor<2> softmax(const Tensor<2>& scores) { return softmax_formula(scores); }
Tensor<3> softmax(const Tensor<3>& scores) { return softmax_formula(scores); }

}  // namespace t2t
