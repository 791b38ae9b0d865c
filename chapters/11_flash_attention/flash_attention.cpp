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

/// One thread's block of queries: R rows, the tokens of a group's first head, then its next one's.
struct QueryBlock {
  std::size_t first, tokens;  // rows are tokens first, first + 1 … of each head
  Matrix q;                   // [R, D]
  Matrix values;              // [R, D]     o: Σ e^(score − highest)·v so far
  Matrix added;               // [R, D]     what a block of keys adds to it
  Row highest;                // [R]        m, before the division by √D
  Row sum;                    // [R]        l
  Row kept;                   // [R]        what a block of keys leaves of l and o
  float* scores;              // [R, keys]
};

/// Floats of such a block, of up to R rows.
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

/// Views of a thread's scratch memory; queries are copied there to lie in one run.
static QueryBlock begin_block(ConstMatrix q, std::size_t g, std::size_t N, std::size_t D,
                              std::size_t first, std::size_t tokens, Row scratch) {
  const std::size_t R = N * tokens;
  float* next = scratch.data();
  const auto floats = [&](std::size_t count) { return std::exchange(next, next + count); };
  const auto rows = [&] { return Matrix(floats(R * D), R, D, D); };
  const auto numbers = [&] { return Row(floats(R), R); };
  QueryBlock block{first, tokens, rows(), rows(), rows(), numbers(), numbers(), numbers(), next};

  for (std::size_t r = 0; r < R; ++r)
    std::ranges::copy(q.head(g * N + r / tokens, D).row(first + r % tokens),
                      block.q.row(r).begin());
  for (std::size_t r = 0; r < R; ++r) std::ranges::fill(block.values.row(r), 0.0f);
  std::ranges::fill(block.highest, -infinity);
  std::ranges::fill(block.sum, 0.0f);
  return block;
}

/// One row's scores of a block of keys become its weights against the highest so far.
static void take_scores(QueryBlock& block, std::size_t r, Row scores, float scale) {
  const float before = block.highest[r], highest = std::max(before, max_row(scores));
  block.highest[r] = highest;
  block.kept[r] = std::exp(scale * (before - highest));
  block.sum[r] = block.kept[r] * block.sum[r] + exp_and_sum(scores, scale, highest);
}

/// Keys s, s + 1 … of all that the block meets. seen(t) is the range of them that token t sees.
template <class Seen>
static void take_keys(QueryBlock& block, ConstMatrix k, ConstMatrix v, std::size_t s, Seen seen) {
  const std::size_t R = block.q.rows, D = k.cols;
  const Matrix scores(block.scores, R, k.rows, k.rows);
  matmul_bt(block.q, k, scores);

  // Weights take their scores' place. Hidden keys stand at both ends of a row: theirs are 0.
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

/// o / l, to where the heads lie.
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
  // Checked once, before the loop over the cores, in which nothing may throw.
  expect_grouped(q, heads, mask);
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D;
  const std::size_t G = heads.G, N = H / G, keys = scratch.blocks().keys;
  expect_shape("out", out, {T, H * D});
  scratch.expect_made_for(H, G, D);
  const std::size_t tokens = scratch.tokens(S), blocks = (T + tokens - 1) / tokens;
  const auto seen = [&](std::size_t t) { return keys_seen(t, T, S, mask); };

  // A task is one block of queries of one group. The last sees most keys, so it is begun first.
  for_each_task(blocks * G, N * tokens * S, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i % G, first = (blocks - 1 - i / G) * tokens;
    QueryBlock block =
        begin_block(q, g, N, D, first, std::min(tokens, T - first), scratch.of_thread(thread));

    // What no query of the block sees is never looked at.
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
