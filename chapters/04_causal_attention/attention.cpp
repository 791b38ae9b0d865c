#include "04_causal_attention/attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/fast/score_rule.hpp"
#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

void expect_mask(std::size_t T, std::size_t S, Mask mask) {
  expect(T >= 1, "T, the number of queries", "at least 1", double(T));
  expect(S >= 1, "S, the number of keys", "at least 1", double(S));
  if (mask.is_causal && T > S)
    throw std::invalid_argument(
        fmt::format("causal mask: wanted at least as many keys as queries, got {} and {}", S, T));
  expect(mask.is_causal || mask.window == 0, "window", "0, since the mask is not causal",
         double(mask.window));
}

KeyRange keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask) {
  if (!mask.is_causal) return {0, S};
  const std::size_t end = S - T + t + 1;
  const bool window_hides = mask.window > 0 && mask.window < end;
  return {window_hides ? end - mask.window : 0, end};
}

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

Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask) {
  expect_mask(T, S, mask);
  Tensor<2> added = xt::ones<float>({T, S}) * -infinity;
  for (std::size_t t = 0; t < T; ++t) {
    const KeyRange seen = keys_seen(t, T, S, mask);
    for (std::size_t s = seen.begin; s < seen.end; ++s) added(t, s) = 0;
  }
  return added;
}

Tensor<2> attention_scores(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  const std::size_t T = q.shape(0), S = k.shape(0), D = q.shape(1);
  expect_shape("k", k, {S, D});
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
  const Tensor<2> mask_added = attention_mask(T, S, mask);  // [T, S]

  return matmul_bt(q, k) / std::sqrt(float(D)) + mask_added;  // [T, S]
}

Tensor<2> attention_weights(const Tensor<2>& q, const Tensor<2>& k, Mask mask) {
  return softmax(attention_scores(q, k, mask));  // [T, S]
}

Tensor<2> attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v, Mask mask) {
  expect_shape("v", v, {k.shape(0), k.shape(1)});
  return matmul(attention_weights(q, k, mask), v);  // [T, D]
}

Tensor<3> dropout(const Tensor<3>& weights, float p, Random& random) {
  expect(p >= 0 && p < 1, "p of dropout", "a probability from 0 to below 1", double(p));
  Tensor<3> kept = weights;  // [H, T, S]
  for (float& weight : kept) weight = random.next_uniform() < p ? 0 : weight / (1 - p);
  return kept;
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
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
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
