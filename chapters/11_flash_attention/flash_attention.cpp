#include "11_flash_attention/flash_attention.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "04_causal_attention/fast/attention_rows.hpp"
#include "04_causal_attention/fast/exp_lanes.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "11_flash_attention/register_tiles.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// One thread's block of queries, each a column: its tokens for the group's first head, then the
/// same tokens for the next head, and so on. R is their number, rounded up to whole registers; the
/// remaining columns hold zeros.
struct QueryBlock {
  std::size_t first, tokens;  // the tokens are first, first + 1 … first + tokens − 1
  std::size_t queries;        // N · tokens, at most R
  Matrix q;                   // [D, R]     times the scores' factor, mostly 1/√D
  Matrix values;              // [D, R]     o
  Matrix scores;              // [keys, R]  of the newest block of keys, and then their weights
  Row highest;                // [R]        m
  Row sum;                    // [R]        l
  Row kept;                   // [R]        the factor for l and o before the newest keys are added

  std::size_t token(std::size_t column) const { return first + column % tokens; }
};

/// How many floats a block of R columns takes.
static std::size_t block_floats(std::size_t R, std::size_t D, std::size_t keys) {
  return R * (2 * D + keys + 3);
}

FlashScratch::FlashScratch(std::size_t H, std::size_t G, std::size_t D, FlashBlocks blocks)
    : H_(H), G_(G), D_(D), blocks_(blocks) {
  expect_groups(H, G);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  expect(blocks.queries >= 1, "queries of a block", "at least 1", blocks.queries);
  expect(blocks.keys >= 1, "keys of a block", "at least 1", blocks.keys);
  const std::size_t R = whole_registers(std::max(H / G, blocks.queries));
  floats_ = empty(thread_count(), block_floats(R, D, blocks.keys));
}

std::size_t FlashScratch::tokens() const {
  return std::max<std::size_t>(1, blocks_.queries / (H_ / G_));
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
                              std::size_t first, std::size_t tokens, std::size_t keys, float factor,
                              Row scratch) {
  const std::size_t R = whole_registers(N * tokens);
  float* next = scratch.data();
  const auto floats = [&](std::size_t count) { return std::exchange(next, next + count); };
  const auto rows = [&](std::size_t count) { return Matrix(floats(count * R), count, R, R); };
  const auto numbers = [&] { return Row(floats(R), R); };
  // Braces call these from left to right, so that each part follows the one before it.
  QueryBlock block{first,      tokens,    N * tokens, rows(D),  rows(D),
                   rows(keys), numbers(), numbers(),  numbers()};

  std::fill_n(scratch.data(), 2 * D * R, 0.0f);  // q and o
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t t = 0; t < tokens; ++t) {
      const ConstRow query = q.head(g * N + n, D).row(first + t);
      for (std::size_t d = 0; d < D; ++d) block.q.row(d)[n * tokens + t] = factor * query[d];
    }
  std::ranges::fill(block.highest, -infinity);
  std::ranges::fill(block.sum, 0.0f);
  return block;
}

/// Gives masked keys a score of −infinity: seen(t) is the range of keys that token t sees, and row
/// i of the scores is that of key s + i. If the first token sees the block's last key, and the last
/// token its first, nothing is masked: most blocks are like this.
template <class Seen>
static void mask_scores(const QueryBlock& block, Matrix scores, std::size_t s, Seen seen) {
  const std::size_t last = block.first + block.tokens - 1;
  if (seen(block.first).end >= s + scores.rows && seen(last).begin <= s) return;
  for (std::size_t r = 0; r < block.queries; ++r) {
    const KeyRange of_token = seen(block.token(r));
    const std::size_t from = std::clamp(of_token.begin, s, s + scores.rows) - s;
    const std::size_t until = std::clamp(of_token.end, s, s + scores.rows) - s;
    for (std::size_t i = 0; i < from; ++i) scores.row(i)[r] = -infinity;
    for (std::size_t i = until; i < scores.rows; ++i) scores.row(i)[r] = -infinity;
  }
}

/// Combines f(x) of all registers x in a column of registers by join. Four are combined at a time,
/// since each join must wait for the result of the one before it.
template <class F, class Join>
static Lanes fold_column(float* column, Matrix scores, Lanes start, F f, Join join) {
  Lanes sums[4] = {start, start, start, start};
  std::size_t i = 0;
  for (; i + 4 <= scores.rows; i += 4)
    for (std::size_t n = 0; n < 4; ++n)
      sums[n] = join(sums[n], f(column + (i + n) * scores.stride));
  for (; i < scores.rows; ++i) sums[0] = join(sums[0], f(column + i * scores.stride));
  return join(join(sums[0], sums[1]), join(sums[2], sums[3]));
}

/// Updates m and l of the queries from column r on, a register of them, with their scores of a
/// block of keys, and turns these into weights in place.
static void take_scores(QueryBlock& block, Matrix scores, std::size_t r) {
  const Lanes before = Lanes::load_unaligned(&block.highest[r]);
  const Lanes highest = fold_column(
      &scores.row(0)[r], scores, before, [](float* x) { return Lanes::load_unaligned(x); },
      [](Lanes a, Lanes b) { return xsimd::max(a, b); });
  highest.store_unaligned(&block.highest[r]);

  // A query that has seen no key has m = −infinity, and −infinity minus −infinity would be NaN.
  const Lanes m = xsimd::select(highest == Lanes(-infinity), Lanes(0), highest);
  const Lanes kept = exp_below_0(before - m);
  kept.store_unaligned(&block.kept[r]);
  const auto weigh = [&](float* x) {
    const Lanes weight = exp_below_0(Lanes::load_unaligned(x) - m);
    weight.store_unaligned(x);
    return weight;
  };
  const Lanes added = fold_column(&scores.row(0)[r], scores, Lanes(0), weigh,
                                  [](Lanes a, Lanes b) { return a + b; });
  xsimd::fma(kept, Lanes::load_unaligned(&block.sum[r]), added).store_unaligned(&block.sum[r]);
}

/// Processes one block of keys: k and v are rows s, s + 1 … of all keys and values.
template <class Seen>
static void take_keys(QueryBlock& block, ConstMatrix k, ConstMatrix v, std::size_t s, float cap,
                      Seen seen) {
  const Matrix scores = block.scores.rows_from(0, k.rows);
  multiply_tiles(k, block.q, scores);
  for (std::size_t i = 0; cap > 0 && i < k.rows; ++i)
    cap_row(scores.row(i), {Mask::none, 1, cap}, k.cols);
  mask_scores(block, scores, s, seen);
  for (std::size_t r = 0; r < scores.cols; r += Lanes::size) take_scores(block, scores, r);
  add_transposed_tiles(v, scores, block.kept, block.values);
}

/// Writes o / l to the rows of out that belong to the block's tokens and heads.
static void end_block(const QueryBlock& block, std::size_t g, std::size_t N, Matrix out) {
  const std::size_t D = block.values.rows;
  for (std::size_t n = 0; n < N; ++n)
    for (std::size_t t = 0; t < block.tokens; ++t) {
      const std::size_t r = n * block.tokens + t;
      const float inverse_sum = 1 / block.sum[r];
      const Row to = out.head(g * N + n, D).row(block.first + t);
      for (std::size_t d = 0; d < D; ++d) to[d] = block.values.row(d)[r] * inverse_sum;
    }
}

void flash_attention_rows(ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule,
                          Matrix out, FlashScratch& scratch) {
  // All checks come before the parallel loop, in which nothing may throw.
  expect_grouped(q, heads, rule.mask);
  const std::size_t T = q.rows, S = heads.S(), D = heads.D(), H = q.cols / D;
  const std::size_t G = heads.G, N = H / G, keys = scratch.blocks().keys;
  expect_shape("out", out, {T, H * D});
  scratch.expect_made_for(H, G, D);
  const std::size_t tokens = scratch.tokens(), blocks = (T + tokens - 1) / tokens;
  const auto seen = [&](std::size_t t) { return keys_seen(t, T, S, rule.mask); };

  // A task is one block of queries of one group. A group is finished before the next begins, so
  // that its keys stay in a near cache; its last tokens see the most keys, and go first.
  for_each_task(blocks * G, N * tokens * S, [&](std::size_t i, std::size_t thread) {
    const std::size_t g = i / blocks, first = (blocks - 1 - i % blocks) * tokens;
    QueryBlock block = begin_block(q, g, N, D, first, std::min(tokens, T - first), keys,
                                   rule.factor_for(D), scratch.of_thread(thread));

    // Keys that no query of the block sees are not read.
    const KeyRange of_block = keys_seen(first, block.tokens, T, S, rule.mask);
    for (std::size_t s = of_block.begin; s < of_block.end; s += keys) {
      const std::size_t count = std::min(keys, of_block.end - s);
      take_keys(block, heads.keys(g).rows_from(s, count), heads.values(g).rows_from(s, count), s,
                rule.cap, seen);
    }
    end_block(block, g, N, out);
  });
}

AttentionKernel flash_kernel(std::size_t H, std::size_t G, std::size_t D, std::size_t S) {
  return [of_several = FlashScratch(H, G, D), of_one = GroupedScratch(1, S, H, D)](
             ConstMatrix q, const KeyValueHeads& heads, const ScoreRule& rule, Matrix out) mutable {
    if (q.rows > 1)
      flash_attention_rows(q, heads, rule, out, of_several);
    else
      grouped_attention_rows(q, heads, rule, out, of_one);
  };
}

}  // namespace t2t
