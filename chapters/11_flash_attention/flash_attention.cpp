#include "11_flash_attention/flash_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "04_causal_attention/softmax.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "lanes.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// One thread's block of queries. Its R rows are the block's tokens for the group's first head,
/// then the same tokens for the next head, and so on.
struct QueryBlock {
  std::size_t first, tokens;  // the tokens are first, first + 1 … first + tokens − 1
  Matrix q;                   // [R, D]
  Matrix values;              // [R, D]     o
  Matrix added;               // [R, D]     what the newest block of keys adds to o
  Row highest;                // [R]        m·√D: the scores are not divided by √D
  Row sum;                    // [R]        l
  Row kept;                   // [R]        the factor for l and o before the newest keys are added
  float* scores;              // [R, keys]
};

/// How many floats a block of R rows takes.
static std::size_t block_floats(std::size_t R, std::size_t D, std::size_t keys) {
  return R * (3 * D + 3 + keys);
}

FlashScratch::FlashScratch(std::size_t H, std::size_t G, std::size_t D, FlashBlocks blocks)
    : H_(H), G_(G), D_(D), blocks_(blocks) {
  expect_groups(H, G);
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
  expect(blocks.rows >= 1, "rows of a block of queries", "at least 1", double(blocks.rows));
  expect(blocks.keys >= 1, "keys of a block", "at least 1", double(blocks.keys));
  expect(blocks.far_rows >= 1, "far rows of a block of queries", "at least 1",
         double(blocks.far_rows));
  const std::size_t N = H / G, rows = std::max({N, blocks.rows, blocks.far_rows});
  floats_ = empty(thread_count(), block_floats(rows, D, blocks.keys));
}

std::size_t FlashScratch::tokens(std::size_t S) const {
  const bool far = 2 * S * D_ * sizeof(float) >= FlashBlocks::near_bytes;
  return std::max<std::size_t>(1, (far ? blocks_.far_rows : blocks_.rows) / (H_ / G_));
}

void FlashScratch::expect_made_for(std::size_t H, std::size_t G, std::size_t D) const {
  if (H != H_ || G != G_ || D != D_ || thread_count() > threads())
    throw std::invalid_argument(fmt::format(
        "scratch: made for H = {}, G = {}, D = {} and {} threads, wanted H = {}, G = {}, D = {} "
        "and {}",
        H_, G_, D_, threads(), H, G, D, thread_count()));
}

/// Lays a block out in a thread's scratch memory, copies its queries there and sets m, l and o.
static QueryBlock begin_block(ConstMatrix q, std::size_t g, std::size_t N, std::size_t D,
                              std::size_t first, std::size_t tokens, Row scratch) {
  const std::size_t R = N * tokens;
  float* next = scratch.data();
  const auto floats = [&](std::size_t count) { return std::exchange(next, next + count); };
  const auto rows = [&] { return Matrix(floats(R * D), R, D, D); };
  const auto numbers = [&] { return Row(floats(R), R); };
  // Braces call these from left to right, so that each part follows the one before it.
  QueryBlock block{first, tokens, rows(), rows(), rows(), numbers(), numbers(), numbers(), next};

  for (std::size_t r = 0; r < R; ++r)
    std::ranges::copy(q.head(g * N + r / tokens, D).row(first + r % tokens),
                      block.q.row(r).begin());
  for (std::size_t r = 0; r < R; ++r) std::ranges::fill(block.values.row(r), 0.0f);
  std::ranges::fill(block.highest, -infinity);
  std::ranges::fill(block.sum, 0.0f);
  return block;
}

/// Updates m and l of row r with its scores of a block of keys, and turns these into weights in
/// place.
static void take_scores(QueryBlock& block, std::size_t r, Row scores, float scale) {
  const float before = block.highest[r], highest = std::max(before, max_row(scores));
  block.highest[r] = highest;
  block.kept[r] = std::exp(scale * (before - highest));
  block.sum[r] = block.kept[r] * block.sum[r] + exp_and_sum(scores, scale, highest);
}

/// Takes one block of keys: k and v are rows s, s + 1 … of all keys and values. seen(t) is the
/// range of keys that token t sees.
template <class Seen>
static void take_keys(QueryBlock& block, ConstMatrix k, ConstMatrix v, std::size_t s, Seen seen) {
  const std::size_t R = block.q.rows, D = k.cols;
  const Matrix scores(block.scores, R, k.rows, k.rows);
  matmul_bt(block.q, k, scores);

  // Weights replace the scores. Hidden keys can be at both ends of a row: their weight is 0.
  const float scale = 1 / std::sqrt(float(D));
  for (std::size_t r = 0; r < R; ++r) {
    const KeyRange of_token = seen(block.first + r % block.tokens);
    const std::size_t from = std::clamp(of_token.begin, s, s + k.rows) - s;
    const std::size_t until = std::clamp(of_token.end, s, s + k.rows) - s;
    std::ranges::fill(scores.row(r).first(from), 0.0f);
    std::ranges::fill(scores.row(r).subspan(until), 0.0f);
    block.kept[r] = 1;
    if (from < until) take_scores(block, r, scores.row(r).subspan(from, until - from), scale);
  }

  matmul(scores, v, block.added);
  for (std::size_t r = 0; r < R; ++r) {
    const Row values = block.values.row(r), added = block.added.row(r);
    const float kept = block.kept[r];
#pragma omp simd
    for (std::size_t d = 0; d < D; ++d) values[d] = kept * values[d] + added[d];
  }
}

/// Writes o / l to the rows of out that belong to the block's tokens and heads.
static void end_block(const QueryBlock& block, std::size_t g, std::size_t N, Matrix out) {
  const std::size_t D = block.values.cols;
  for (std::size_t r = 0; r < block.values.rows; ++r) {
    const float inverse_sum = 1 / block.sum[r];
    const auto share = [&](Lanes v) { return v * inverse_sum; };
    const Row to = out.head(g * N + r / block.tokens, D).row(block.first + r % block.tokens);
    map_row(to, share, block.values.row(r));
  }
}

void flash_attention_rows(ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out,
                          FlashScratch& scratch) {
  // All checks come before the parallel loop, in which nothing may throw.
  expect_grouped(q, heads, mask);
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D;
  const std::size_t G = heads.G, N = H / G, keys = scratch.blocks().keys;
  expect_shape("out", out, {T, H * D});
  scratch.expect_made_for(H, G, D);
  const std::size_t tokens = scratch.tokens(S), blocks = (T + tokens - 1) / tokens;
  const auto seen = [&](std::size_t t) { return keys_seen(t, T, S, mask); };

  // A task is one block of queries of one group. The last tokens see the most keys: they go first.
  for_each_task(blocks * G, N * tokens * S, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i % G, first = (blocks - 1 - i / G) * tokens;
    QueryBlock block =
        begin_block(q, g, N, D, first, std::min(tokens, T - first), scratch.of_thread(thread));

    // Keys that no query of the block sees are not read.
    const KeyRange of_block = keys_seen(first, block.tokens, T, S, mask);
    for (std::size_t s = of_block.begin; s < of_block.end; s += keys) {
      const std::size_t count = std::min(keys, of_block.end - s);
      take_keys(block, heads.keys(g).rows_from(s, count), heads.values(g).rows_from(s, count), s,
                seen);
    }
    end_block(block, g, N, out);
  });
}

AttentionKernel flash_kernel(std::size_t H, std::size_t G, std::size_t D, std::size_t S) {
  return [of_several = FlashScratch(H, G, D), of_one = GroupedScratch(1, S, H, D)](
             ConstMatrix q, const KeyValueHeads& heads, Mask mask, Matrix out) mutable {
    if (q.rows > 1)
      flash_attention_rows(q, heads, mask, out, of_several);
    else
      grouped_attention_rows(q, heads, mask, out, of_one);
  };
}

}  // namespace t2t
