#include "04_causal_attention/fast/attention_rows.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "04_causal_attention/multi_head.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

KeyValueHeads side_by_side(ConstMatrix k, ConstMatrix v, std::size_t G) {
  expect_divides(k.cols, G);
  expect_shape("v", v, {k.rows, k.cols});
  const std::size_t D = k.cols / G;
  return {k.head(0, D), v.head(0, D), G, D};
}

KeyValueHeads cut(const KeyValueHeads& heads, KeyRange keys) {
  return {heads.first_keys.rows_from(keys.begin, keys.size()),
          heads.first_values.rows_from(keys.begin, keys.size()), heads.G, heads.head_stride};
}

void expect_heads(const KeyValueHeads& heads) {
  expect(heads.G >= 1, "G, the heads of keys and values", "at least 1", 0);
  expect(heads.D() >= 1, "D, the width of a head", "at least 1", 0);
  expect_shape("values", heads.first_values, {heads.S(), heads.D()});
}

AttentionScratch::AttentionScratch(std::size_t T, std::size_t S)
    : scores_(empty(thread_count(), attend_floats(T, S))) {}

/// Shapes are checked here, before the loop over the threads, in which nothing may throw.
static void expect_attention_rows(ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out,
                                  const AttentionScratch& scratch) {
  const std::size_t T = q.rows, S = heads.S(), C = heads.G * heads.D();
  expect_heads(heads);
  expect_mask(T, S, mask);
  expect_shape("q", q, {T, C});
  expect_shape("out", out, {T, C});
  if (scratch.floats() < attend_floats(T, S) || scratch.threads() < thread_count())
    throw std::invalid_argument(fmt::format(
        "scratch: wanted {} floats for each of {} threads ({} queries, {} keys), got {} floats for "
        "each of {} threads",
        attend_floats(T, S), thread_count(), T, S, scratch.floats(), scratch.threads()));
}

void attend_heads(ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out,
                  Matrix scratch) {
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D;
  const std::size_t blocks = (T + query_block - 1) / query_block;

  // A task is one block of one head. The last blocks see the most keys, so they are begun first:
  // short tasks are left for the end, and all threads finish at about the same time.
  for_each_task(blocks * H, std::min(T, query_block) * S, [&](std::size_t i, std::size_t thread) {
    const std::size_t h = i % H, g = h / (H / heads.G), t = (blocks - 1 - i / H) * query_block;
    const std::size_t count = std::min(query_block, T - t);
    const KeyValueHeads seen = cut(heads, keys_seen(t, count, T, S, rule.mask));
    attend(q.head(h, D).rows_from(t, count), seen.keys(g), seen.values(g), rule,
           out.head(h, D).rows_from(t, count), scratch.row(thread));
  });
}

void attention_rows(ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out,
                    AttentionScratch& scratch) {
  expect_attention_rows(q, heads, mask, out, scratch);
  attend_heads(q, heads, mask, out, scratch.rows());
}

}  // namespace t2t
