#include "06_gqa/fast/grouped_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "06_gqa/fast/decode_attention.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

void expect_grouped(ConstMatrix q, const KeyValueHeads& heads, Mask mask) {
  expect_heads(heads);
  expect_mask(q.rows, heads.S(), mask);
  if (q.cols % heads.D() != 0)
    throw std::invalid_argument(
        fmt::format("q: wanted whole heads of width D = {}, got {} columns", heads.D(), q.cols));
  expect_groups(q.cols / heads.D(), heads.G);
}

/// Floats of scores that one task needs. For one query, these are the scores of a group's N heads
/// over a stretch of keys; for several queries, the scores of a block of queries over all keys.
static std::size_t task_floats(std::size_t T, std::size_t S, std::size_t N) {
  return T == 1 ? N * std::min(S, stretch_keys) : attend_floats(T, S);
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
        "scratch: wanted one made for T = {}, S = {}, H = {}, D = {} and {} threads or more, got "
        "scores {}, stretches {}, log_sums {}",
        T, S, H, D, thread_count(), shape_text(scratch.scores.shape()),
        shape_text(scratch.stretches.shape()), shape_text(scratch.log_sums.shape())));
}

/// One query. A task is one stretch of one group's keys and values, for all N heads of the group.
static void decode(ConstRow q, const KeyValueHeads& heads, const ScoreRule& rule, Row out,
                   GroupedScratch& scratch) {
  const std::size_t S = heads.S(), D = heads.D(), H = q.size() / D, N = H / heads.G;
  const std::size_t P = stretch_count(S), most = (S + P - 1) / P;
  const ConstMatrix queries(q.data(), H, D, D);                   // [H, D]: the row as its heads
  const Matrix stretches(scratch.stretches.data(), H, D, P * D);  // [H, D], of stretch 0
  const Matrix log_sums(scratch.log_sums.data(), H, P, P);        // [H, P]

  for_each_task(P * heads.G, most * D * N, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i / P, p = i % P, count = std::min(most, S - p * most);
    Matrix of_stretch = stretches.rows_from(g * N, N);  // [N, D]
    of_stretch.data += p * D;                           // of stretch p
    attend_stretch(queries.rows_from(g * N, N), heads.keys(g).rows_from(p * most, count),
                   heads.values(g).rows_from(p * most, count),
                   {row(scratch.scores, thread).data(), N, count, count}, of_stretch,
                   log_sums.rows_from(g * N, N).cols_from(p, 1), rule);
  });
  for (std::size_t h = 0; h < H; ++h)
    join_stretches({stretches.row(h).data(), P, D, D}, log_sums.row(h), out.subspan(h * D, D));
}

void grouped_attention_rows(ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule,
                            Matrix out, GroupedScratch& scratch) {
  // Everything is checked here, since nothing may throw inside the parallel loop.
  expect_grouped(q, heads, rule.mask);
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D;
  expect_shape("out", out, {T, H * D});
  expect_room(scratch, T, S, H, heads.G, D);

  if (T == 1)
    return decode(q.row(0), cut(heads, keys_seen(0, T, S, rule.mask)), rule, out.row(0), scratch);
  attend_heads(q, heads, rule, out, scratch.scores);
}

}  // namespace t2t
