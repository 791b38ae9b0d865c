#include "04_causal_attention/softmax.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/fast/exp_lanes.hpp"
#include "lanes.hpp"
#include "rows.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// Throws for this row of a softmax. With several heads, rows are numbered across them: h·T + t.
static void refuse_row(std::size_t row) {
  throw std::invalid_argument(
      fmt::format("softmax: row {} is all -infinity: a mask that hides every key", row));
}

/// Whether a mask hides the whole row. A row with a NaN is not hidden: all of its weights become
/// NaN.
static bool all_hidden(ConstRow scores) {
  return std::ranges::all_of(scores, [](float score) { return score == -infinity; });
}

/// Softmax along the last axis; keep_dims keeps that axis, with length 1. If N = 2, scores has one
/// head, [T, S], as in the comments at the right. If N = 3, it has H heads, [H, T, S].
template <std::size_t N>
static Tensor<N> softmax_formula(const Tensor<N>& scores) {
  const Tensor<N> highest = xt::amax(scores, {N - 1}, xt::keep_dims);  // [T, 1]
  const Tensor<N> powers = xt::exp(scores - highest);                  // [T, S]
  const Tensor<N> sum = xt::sum(powers, {N - 1}, xt::keep_dims);       // [T, 1]

  const std::size_t S = scores.shape(N - 1);
  for (std::size_t first = 0; first < scores.size(); first += S)
    if (all_hidden({scores.data() + first, S})) refuse_row(first / S);
  return powers / sum;  // [T, S]
}

Tensor<2> softmax(const Tensor<2>& scores) { return softmax_formula(scores); }
Tensor<3> softmax(const Tensor<3>& scores) { return softmax_formula(scores); }

/// Four registers run side by side, and a long row is summed in halves, both as in fold_lanes.
float exp_and_sum(Row x, float scale, float highest) {
  constexpr std::size_t W = Lanes::size;
  if (x.size() > longest_run) {
    const std::size_t half = first_half(x.size());
    return exp_and_sum(x.first(half), scale, highest) +
           exp_and_sum(x.subspan(half), scale, highest);
  }
  Lanes sums[4] = {Lanes(0), Lanes(0), Lanes(0), Lanes(0)};
  const auto power = [&](Lanes v) { return exp_below_0((v - highest) * scale); };

  std::size_t s = 0;
  for (; s + 4 * W <= x.size(); s += 4 * W)
    for (std::size_t i = 0; i < 4; ++i) {
      __builtin_prefetch(x.data() + x.size() + s + i * W);  // in a matrix, the next row
      const Lanes y = power(Lanes::load_unaligned(&x[s + i * W]));
      y.store_unaligned(&x[s + i * W]);
      sums[i] += y;
    }
  for (; s + W <= x.size(); s += W) {
    const Lanes y = power(Lanes::load_unaligned(&x[s]));
    y.store_unaligned(&x[s]);
    sums[0] += y;
  }
  if (s < x.size()) {
    const Lanes y = power(load_part(&x[s], x.size() - s, -infinity));
    store_part(y, &x[s], x.size() - s);
    sums[1] += y;
  }
  return add_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

bool softmax_row(Row x, float scale) {
  const float highest = max_row(x);
  if (highest == -infinity && all_hidden(x)) return false;

  const float inverse_sum = 1 / exp_and_sum(x, scale, highest);
  const auto share = [&](Lanes power) { return power * inverse_sum; };
  map_row(x, share, x);
  return true;
}

void softmax_rows(Matrix x) {
  // A loop over the threads may not throw: it notes a refused row, and we throw after the loop.
  std::atomic<std::size_t> refused = x.rows;
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    if (!softmax_row(x.row(t))) refused = t;
  });
  if (refused < x.rows) refuse_row(refused);
}

}  // namespace t2t
