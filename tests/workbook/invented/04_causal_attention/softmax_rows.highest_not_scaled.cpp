#include "04_causal_attention/fast/softmax_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "lanes.hpp"
#include "rows.hpp"

namespace t2t {

namespace {

/// e^x for x of at most 0; 0 where a float could no longer be a normal number. NaN stays NaN.
float exp_or_zero(float x) { return x < -87.68f ? 0.0f : std::exp(x); }

}  // namespace

float exp_and_sum(Row x, float scale, float highest) {
  if (x.size() > longest_run) {
    const std::size_t middle = first_half(x.size());
    const float left = exp_and_sum(x.first(middle), scale, highest);
    return left + exp_and_sum(x.subspan(middle), scale, highest);
  }
  for (float& score : x) score = exp_or_zero(scale * score - highest);  // WRONG

  float partial[8] = {}, sum = 0;
  std::size_t s = 0;
  for (; s + 8 <= x.size(); s += 8)
    for (std::size_t i = 0; i < 8; ++i) partial[i] += x[s + i];
  for (; s < x.size(); ++s) sum += x[s];
  for (const float part : partial) sum += part;
  return sum;
}

bool softmax_row(Row x, float scale) {
  if (all_masked(x)) return false;
  float highest = -std::numeric_limits<float>::infinity();
  for (const float score : x) highest = std::max(highest, score);
  const float sum = exp_and_sum(x, scale, highest);
  std::ranges::transform(x, x.begin(), [sum](float y) { return y / sum; });
  return true;
}

void softmax_rows(Matrix x) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::atomic<std::size_t> masked = none;
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    if (!softmax_row(x.row(t))) masked = t;
  });
  if (masked != none) refuse_masked_row(masked);
}

}  // namespace t2t
