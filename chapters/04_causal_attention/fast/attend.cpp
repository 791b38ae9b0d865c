#include "04_causal_attention/fast/attend.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/fast/softmax_rows.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

KeyRange keys_seen(std::size_t t, std::size_t count, std::size_t T, std::size_t S, Mask mask) {
  return {keys_seen(t, T, S, mask).begin, keys_seen(t + count - 1, T, S, mask).end};
}

double pairs_seen(std::size_t T, std::size_t S, Mask mask) {
  expect_mask(T, S, mask);
  if (!mask.is_causal) return double(T) * double(S);
  // Without a window the last of T queries sees S keys, the one before it S − 1, and so on …
  const double pairs = double(T) * (double(S) - (double(T) - 1) / 2);
  if (mask.window == 0 || mask.window >= S) return pairs;
  // … and the window hides S − W of them from the last query, S − W − 1 from the one before it.
  const double hidden = double(S - mask.window), queries = std::min(double(T), hidden);
  return pairs - queries * (hidden - (queries - 1) / 2);
}

std::size_t attend_floats(std::size_t T, std::size_t S) { return std::min(T, query_block) * S; }

/// One block of T queries and the S keys that they see. Its scores fill the scratch memory, [T, S].
static void attend_block(ConstMatrix q, ConstMatrix k, ConstMatrix v, const ScoreRule& rule,
                         Matrix out, Matrix scores) {
  const std::size_t T = q.rows, S = k.rows;
  matmul_bt(q, k, scores);

  for (std::size_t t = 0; t < T; ++t) {
    const KeyRange seen = keys_seen(t, T, S, rule.mask);
    const float scale = cap_row(scores.row(t).subspan(seen.begin, seen.size()), rule, q.cols);
    std::ranges::fill(scores.row(t).first(seen.begin), -infinity);
    std::ranges::fill(scores.row(t).subspan(seen.end), -infinity);
    softmax_row(scores.row(t), scale);
  }

  matmul(scores, v, out);  // the scores have become weights
}

void attend(ConstMatrix q, ConstMatrix k, ConstMatrix v, const ScoreRule& rule, Matrix out,
            Row scratch) {
  const std::size_t T = q.rows, S = k.rows, D = q.cols;
  expect_mask(T, S, rule.mask);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  expect_shape("k", k, {S, D});
  expect_shape("v", v, {S, D});
  expect_shape("out", out, {T, D});
  if (scratch.size() < attend_floats(T, S))
    throw std::invalid_argument(
        fmt::format("scratch: wanted at least {} floats for {} queries and {} keys, got {}",
                    attend_floats(T, S), T, S, scratch.size()));

  // The queries of a block are again the last of the keys that they see, so the mask is the same.
  for (std::size_t t = 0; t < T; t += query_block) {
    const std::size_t count = std::min(query_block, T - t);
    const KeyRange seen = keys_seen(t, count, T, S, rule.mask);
    attend_block(q.rows_from(t, count), k.rows_from(seen.begin, seen.size()),
                 v.rows_from(seen.begin, seen.size()), rule, out.rows_from(t, count),
                 {scratch.data(), count, seen.size(), seen.size()});
  }
}

}  // namespace t2t
