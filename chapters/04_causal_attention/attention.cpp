#include "04_causal_attention/attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "04_causal_attention/softmax.hpp"
#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

void expect_mask(std::size_t T, std::size_t S, Mask mask) {
  expect(T >= 1, "T, the number of queries", "at least 1", double(T));
  expect(S >= 1, "S, the number of keys", "at least 1", double(S));
  if (mask == Mask::causal && T > S)
    throw std::invalid_argument(
        fmt::format("causal mask: wanted at least as many keys as queries, got {} and {}", S, T));
}

std::size_t keys_seen(std::size_t t, std::size_t T, std::size_t S, Mask mask) {
  return mask == Mask::causal ? S - T + t + 1 : S;
}

Tensor<2> attention_mask(std::size_t T, std::size_t S, Mask mask) {
  expect_mask(T, S, mask);
  Tensor<2> added = xt::zeros<float>({T, S});
  for (std::size_t t = 0; t < T; ++t)
    for (std::size_t s = keys_seen(t, T, S, mask); s < S; ++s) added(t, s) = -infinity;
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

Tensor<2> dropout(const Tensor<2>& weights, float p, Random& random) {
  expect(p >= 0 && p < 1, "dropout", "a probability from 0 to below 1", double(p));
  Tensor<2> kept = weights;  // [T, S]
  for (float& weight : kept) weight = random.next_uniform() < p ? 0 : weight / (1 - p);
  return kept;
}

std::size_t attend_floats(std::size_t T, std::size_t S) { return std::min(T, query_block) * S; }

/// One block of queries, whose scores fit the scratch memory: [T, S].
static void attend_block(ConstMatrix q, ConstMatrix k, ConstMatrix v, Mask mask, Matrix out,
                         Matrix scores) {
  const std::size_t T = q.rows, S = k.rows;
  matmul_bt(q, k, scores);

  const float scale = 1 / std::sqrt(float(q.cols));
  for (std::size_t t = 0; t < T; ++t) {
    std::ranges::fill(scores.row(t).subspan(keys_seen(t, T, S, mask)), -infinity);
    softmax_row(scores.row(t), scale);
  }

  matmul(scores, v, out);  // rows of weights by now
}

void attend(ConstMatrix q, ConstMatrix k, ConstMatrix v, Mask mask, Matrix out, Row scratch) {
  const std::size_t T = q.rows, S = k.rows, D = q.cols;
  expect_mask(T, S, mask);
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
  expect_shape("k", k, {S, D});
  expect_shape("v", v, {S, D});
  expect_shape("out", out, {T, D});
  if (scratch.size() < attend_floats(T, S))
    throw std::invalid_argument(
        fmt::format("scratch: wanted at least {} floats for {} queries and {} keys, got {}",
                    attend_floats(T, S), T, S, scratch.size()));

  // Queries of one block, with the keys that its last one sees, are again the last of their keys.
  for (std::size_t t = 0; t < T; t += query_block) {
    const std::size_t count = std::min(query_block, T - t);
    const std::size_t seen = keys_seen(t + count - 1, T, S, mask);
    attend_block(q.rows_from(t, count), k.rows_from(0, seen), v.rows_from(0, seen), mask,
                 out.rows_from(t, count), {scratch.data(), count, seen, seen});
  }
}

}  // namespace t2t
