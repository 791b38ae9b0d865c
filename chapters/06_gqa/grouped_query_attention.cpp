#include "06_gqa/grouped_query_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "04_causal_attention/multi_head.hpp"
#include "06_gqa/decode_attention.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_groups(std::size_t H, std::size_t G) {
  if (H < 1 || G < 1 || H % G != 0)
    throw std::invalid_argument(fmt::format(
        "groups: wanted G key and value heads that divide H query heads, got H = {}, G = {}", H,
        G));
}

std::size_t group_of(std::size_t h, std::size_t H, std::size_t G) { return h / (H / G); }

std::size_t expect_shared(ConstMatrix q, ConstMatrix k, ConstMatrix v, std::size_t H, std::size_t G,
                          Mask mask) {
  expect_groups(H, G);
  const std::size_t T = q.rows, S = k.rows, D = q.cols / H;
  expect_mask(T, S, mask);
  if (D < 1 || q.cols % H != 0)
    throw std::invalid_argument(
        fmt::format("q: wanted columns for H = {} heads, got {}", H, q.cols));
  expect_shape("k", k, {S, G * D});
  expect_shape("v", v, {S, G * D});
  return D;
}

void expect_shared(ConstMatrix q, const KvCache& cache, std::size_t H) {
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  expect_groups(H, G);
  expect_mask(q.rows, cache.length, Mask::causal);
  expect_shape("q", q, {q.rows, H * D});
  expect_shape("cache.values", cache.values, {G, S, D});
}

// [formula]
Tensor<2> grouped_query_attention(const Tensor<2>& q, const Tensor<2>& k, const Tensor<2>& v,
                                  std::size_t H, std::size_t G, Mask mask) {
  const std::size_t D = expect_shared(q, k, v, H, G, mask);
  const Tensor<3> queries = split_heads(q, H);                           // [H, T, D]
  const Tensor<3> keys = split_heads(k, G), values = split_heads(v, G);  // [G, S, D]

  Tensor<3> heads = empty(H, q.shape(0), D);  // [H, T, D]
  for (std::size_t h = 0; h < H; ++h) {
    const std::size_t g = group_of(h, H, G);
    xt::view(heads, h) =
        attention(xt::view(queries, h), xt::view(keys, g), xt::view(values, g), mask);
  }
  return merge_heads(heads);  // [T, H·D]
}
// [/formula]

Tensor<2> repeat_kv(const Tensor<2>& x, std::size_t H, std::size_t G) {
  expect_groups(H, G);
  const std::size_t S = x.shape(0), D = x.shape(1) / G;
  expect_shape("x", x, {S, G * D});
  Tensor<2> repeated = empty(S, H * D);  // [S, H·D]
  for (std::size_t s = 0; s < S; ++s)
    for (std::size_t g = 0; g < G; ++g)
      for (std::size_t copy = 0; copy < H / G; ++copy)
        std::ranges::copy(ConstMatrix(x).head(g, D).row(s),
                          Matrix(repeated).head(g * (H / G) + copy, D).row(s).begin());
  return repeated;
}

GroupedWeights draw_grouped_weights(std::size_t C, std::size_t H, std::size_t G, std::size_t D,
                                    Random& random) {
  expect_groups(H, G);
  const auto draw = [&](std::size_t out, std::size_t in) {
    return random.normal<2>({out, in}, 1 / std::sqrt(float(in)));
  };
  return {draw(H * D, C), draw(G * D, C), draw(G * D, C), draw(C, H * D)};  // braces: in this order
}

std::size_t grouped_parameters(std::size_t C, std::size_t H, std::size_t G, std::size_t D) {
  return 2 * C * D * (H + G);
}

Tensor<2> grouped_query_attention(const Tensor<2>& x, const GroupedWeights& weights, std::size_t H,
                                  std::size_t G, Mask mask) {
  expect_groups(H, G);
  const std::size_t C = x.shape(1), D = weights.w_q.shape(0) / H;
  expect_shape("w_q", weights.w_q, {H * D, C});
  expect_shape("w_k", weights.w_k, {G * D, C});
  expect_shape("w_v", weights.w_v, {G * D, C});
  expect_shape("w_o", weights.w_o, {C, H * D});
  const Tensor<2> q = matmul_bt(x, weights.w_q);                                 // [T, H·D]
  const Tensor<2> k = matmul_bt(x, weights.w_k), v = matmul_bt(x, weights.w_v);  // [T, G·D]
  return matmul_bt(grouped_query_attention(q, k, v, H, G, mask), weights.w_o);   // [T, C]
}

/// Floats that one task may need: a block of queries against all keys, or all heads of one group
/// against a stretch.
static std::size_t task_floats(std::size_t T, std::size_t S, std::size_t N) {
  return T == 1 ? N * std::min(S, stretch_keys) : attend_scratch(T, S);
}

GroupedScratch::GroupedScratch(std::size_t T, std::size_t S, std::size_t H, std::size_t D)
    : scores(empty(thread_count(), std::max(task_floats(1, S, H), task_floats(T, S, H)))),
      stretches(empty(H * stretch_count(S), D)),
      log_sums(empty(H, stretch_count(S))) {}

void expect_room(const GroupedScratch& scratch, std::size_t T, std::size_t S, std::size_t H,
                 std::size_t G, std::size_t D) {
  const std::size_t floats = task_floats(T, S, H / G), P = stretch_count(S);
  if (scratch.scores.shape(0) < thread_count() || scratch.scores.shape(1) < floats ||
      (T == 1 && (scratch.stretches.size() < H * P * D || scratch.log_sums.size() < H * P)))
    throw std::invalid_argument(fmt::format(
        "scratch: wanted one made for T = {}, S = {}, H = {}, D = {} and {} threads or more", T, S,
        H, D, thread_count()));
}

/// One query a head. A task is one stretch of one group's keys, for all N heads of the group.
static void decode(ConstRow q, const KeyValueHeads& groups, std::size_t H, Row out,
                   GroupedScratch& scratch) {
  const std::size_t S = groups.first_keys.rows, D = groups.first_keys.cols, N = H / groups.G;
  const std::size_t P = stretch_count(S), most = (S + P - 1) / P;
  const ConstMatrix queries(q.data(), H, D, D);                   // [H, D]: the row as its heads
  const Matrix stretches(scratch.stretches.data(), H, D, P * D);  // head h's first, [H, D]
  const Matrix log_sums(scratch.log_sums.data(), H, P, P);        // [H, P]

  for_each_task(P * groups.G, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i / P, p = i % P, count = std::min(most, S - p * most);
    Matrix of_stretch = stretches.rows_from(g * N, N);  // [N, D]
    of_stretch.data += p * D;
    attend_stretch(queries.rows_from(g * N, N), groups.keys(g).rows_from(p * most, count),
                   groups.values(g).rows_from(p * most, count),
                   {row(scratch.scores, thread).data(), N, count, count}, of_stretch,
                   log_sums.rows_from(g * N, N).cols_from(p, 1));
  });
  for (std::size_t h = 0; h < H; ++h)
    join_stretches({stretches.row(h).data(), P, D, D}, log_sums.row(h), out.subspan(h * D, D));
}

/// Checks what both ways need, once, before the loop over the cores; then picks the way.
static void attend_groups(ConstMatrix q, const KeyValueHeads& groups, std::size_t H, Mask mask,
                          Matrix out, GroupedScratch& scratch) {
  const std::size_t T = q.rows, S = groups.first_keys.rows, D = groups.first_keys.cols;
  expect_shape("out", out, {T, H * D});
  expect_room(scratch, T, S, H, groups.G, D);

  if (T == 1) return decode(q.row(0), groups, H, out.row(0), scratch);
  attend_heads(q, groups, H, mask, out, scratch.scores);
}

void grouped_attention_rows(ConstMatrix q, const KvCache& cache, std::size_t H, Matrix out,
                            GroupedScratch& scratch) {
  expect_shared(q, cache, H);
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  attend_groups(q, {cached_keys(cache, 0), cached_values(cache, 0), G, S * D}, H, Mask::causal, out,
                scratch);
}

void grouped_attention_rows(ConstMatrix q, ConstMatrix k, ConstMatrix v, std::size_t H,
                            std::size_t G, Mask mask, Matrix out, GroupedScratch& scratch) {
  const std::size_t D = expect_shared(q, k, v, H, G, mask);
  attend_groups(q, {k.head(0, D), v.head(0, D), G, D}, H, mask, out, scratch);
}

}  // namespace t2t
