#include "13_training/experiments/block_changes.hpp"

#include <cmath>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

Mask changed_mask(const BlockChanges& changes, const BlockSettings& settings) {
  return {changes.causal, settings.window};
}

static void expect_sizes(const BlockChanges& changes, const BlockSettings& s, ConstMatrix q,
                         ConstMatrix k) {
  expect_shape("q", q, {q.rows, s.H * s.D});
  expect_shape("k", k, {q.rows, s.G * s.D});
  if (changes.slopes.size() > 0) expect_shape("slopes", changes.slopes, {s.H});
}

/// Calls f(number, t, head) for the last channel of each head.
template <class F>
static void for_each_last_channel(Matrix x, std::size_t D, F f) {
  for (std::size_t t = 0; t < x.rows; ++t)
    for (std::size_t h = 0; h < x.cols / D; ++h) f(x.row(t)[(h + 1) * D - 1], t, h);
}

static void multiply(Matrix x, float factor) {
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (float& number : x.row(t)) number *= factor;
  });
}

void change_queries_and_keys(const BlockChanges& changes, const BlockSettings& s, Matrix q,
                             Matrix k) {
  expect_sizes(changes, s, q, k);
  const float root = std::sqrt(float(s.D));
  if (!changes.divided) multiply(q, root);
  if (changes.slopes.size() == 0) return;
  for_each_last_channel(q, s.D, [&](float& number, std::size_t, std::size_t h) {
    number = root * changes.slopes(h);
  });
  for_each_last_channel(k, s.D,
                        [&](float& number, std::size_t t, std::size_t) { number = float(t); });
}

void change_queries_and_keys_backward(const BlockChanges& changes, const BlockSettings& s,
                                      Matrix dq, Matrix dk) {
  expect_sizes(changes, s, dq, dk);
  if (!changes.divided) multiply(dq, std::sqrt(float(s.D)));
  if (changes.slopes.size() == 0) return;
  // What was projected to the last channel was not read.
  const auto clear = [](float& number, std::size_t, std::size_t) { number = 0; };
  for_each_last_channel(dq, s.D, clear);
  for_each_last_channel(dk, s.D, clear);
}

}  // namespace t2t
