#include "04_causal_attention/fast/softmax_rows.hpp"

#include <atomic>
#include <limits>

#include "04_causal_attention/fast/exp_lanes.hpp"
#include "lanes.hpp"
#include "rows.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// Four registers run side by side, and a long row is summed in halves, both as in fold_lanes.
float exp_and_sum(Row x, float scale, float highest) {
  constexpr std::size_t W = Lanes::size;
  if (x.size() > longest_run) {
    const std::size_t half = first_half(x.size());
    return exp_and_sum(x.first(half), scale, highest) +
           exp_and_sum(x.subspan(half), scale, highest);
  }
  Lanes sums[4] = {Lanes(0), Lanes(0), Lanes(0), Lanes(0)};
  const auto exponential = [&](Lanes v) { return exp_below_0((v - highest) * scale); };

  std::size_t s = 0;
  for (; s + 4 * W <= x.size(); s += 4 * W)
    for (std::size_t i = 0; i < 4; ++i) {
      __builtin_prefetch(x.data() + x.size() + s + i * W);  // in a matrix, the next row
      const Lanes y = exponential(Lanes::load_unaligned(&x[s + i * W]));
      y.store_unaligned(&x[s + i * W]);
      sums[i] += y;
    }
  for (; s + W <= x.size(); s += W) {
    const Lanes y = exponential(Lanes::load_unaligned(&x[s]));
    y.store_unaligned(&x[s]);
    sums[0] += y;
  }
  if (s < x.size()) {
    const Lanes y = exponential(load_part(&x[s], x.size() - s, -infinity));
    store_part(y, &x[s], x.size() - s);
    sums[1] += y;
  }
  return add_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

bool softmax_row(Row x, float scale) {
  const float highest = max_row(x);
  if (highest == -infinity && all_masked(x)) return false;

  const float inverse_sum = 1 / exp_and_sum(x, scale, highest);
  const auto share = [&](Lanes y) { return y * inverse_sum; };
  map_row(x, share, x);
  return true;
}

void softmax_rows(Matrix x) {
  // A loop over the threads may not throw: it notes a refused row, and we throw after the loop.
  std::atomic<std::size_t> refused = x.rows;
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    if (!softmax_row(x.row(t))) refused = t;
  });
  if (refused < x.rows) refuse_masked_row(refused);
}

}  // namespace t2t
