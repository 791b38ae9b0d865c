#include "13_training/attention/flash_backward.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "04_causal_attention/fast/attend.hpp"
#include "04_causal_attention/fast/exp_lanes.hpp"
#include "06_gqa/grouped_query_attention.hpp"
#include "11_flash_attention/flash_attention.hpp"
#include "11_flash_attention/register_tiles.hpp"
#include "lanes.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr float infinity = std::numeric_limits<float>::infinity();
static constexpr std::size_t block_queries = FlashBlocks().queries, block_keys = FlashBlocks().keys;

/// Tokens whose queries, of all N heads of a group, make one block.
static std::size_t tokens_of_block(std::size_t N) {
  return std::max<std::size_t>(1, block_queries / N);
}

/// One thread's memory. Queries are columns, as in chapter 11: R of them, those of the block's
/// tokens for the group's first head, then for the next one. W is D rounded up to whole registers.
/// Matrices in both directions are needed as the first and as the second factor of a product.
struct GroupBlock {
  Matrix q, dout, dq;                // [D, R]; q is times the scores' factor, mostly 1/√D
  Matrix q_rows, dout_rows;          // [R, W]
  Matrix weights, dscores;           // [keys, R]
  Matrix product;                    // [keys, W]
  Row log_sums, delta;               // [R]: L, and dout·out
  Row highest, ones;                 // [R]: the highest score so far; factors of 1
  Matrix dk, dv;                     // [S, W], of all keys
  std::size_t first, tokens, heads;  // the queries are those of tokens first … of `heads` heads
  float factor, cap;                 // of the scores

  std::size_t queries() const { return tokens * heads; }
  std::size_t token(std::size_t column) const { return first + column % tokens; }
};

static std::size_t group_floats(std::size_t N, std::size_t D, std::size_t S) {
  const std::size_t R = whole_registers(N * tokens_of_block(N)), W = whole_registers(D);
  return 3 * D * R + 2 * R * W + block_keys * (2 * R + W) + 4 * R + 2 * S * W;
}

FlashBackwardScratch::FlashBackwardScratch(std::size_t H, std::size_t G, std::size_t D,
                                           std::size_t S)
    : H_(H), G_(G), D_(D), S_(S) {
  expect_groups(H, G);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  floats_ = empty(thread_count(), group_floats(H / G, D, S));
}

void FlashBackwardScratch::expect_room(std::size_t H, std::size_t G, std::size_t D,
                                       std::size_t S) const {
  if (G == 0 || H % G != 0 || group_floats(H / G, D, S) > floats_.shape(1) ||
      thread_count() > floats_.shape(0))
    throw std::invalid_argument(fmt::format(
        "scratch: made for H = {}, G = {}, D = {}, S = {} and {} threads, wanted H = {}, G = {}, "
        "D = {}, S = {} and {}",
        H_, G_, D_, S_, floats_.shape(0), H, G, D, S, thread_count()));
}

/// Lays out a thread's memory for one group of heads, and sets dk and dv to 0.
static GroupBlock begin_group(std::size_t N, std::size_t D, std::size_t S, const ScoreRule& rule,
                              Row scratch) {
  const std::size_t R = whole_registers(N * tokens_of_block(N)), W = whole_registers(D);
  float* next = scratch.data();
  const auto matrix = [&](std::size_t rows, std::size_t cols) {
    return Matrix(std::exchange(next, next + rows * cols), rows, cols, cols);
  };
  const auto numbers = [&] { return Row(std::exchange(next, next + R), R); };
  GroupBlock block{matrix(D, R),
                   matrix(D, R),
                   matrix(D, R),
                   matrix(R, W),
                   matrix(R, W),
                   matrix(block_keys, R),
                   matrix(block_keys, R),
                   matrix(block_keys, W),
                   numbers(),
                   numbers(),
                   numbers(),
                   numbers(),
                   matrix(S, W),
                   matrix(S, W),
                   0,
                   0,
                   N,
                   rule.factor_for(D),
                   rule.cap};
  std::ranges::fill(block.ones, 1.0f);
  std::fill_n(block.dk.data, 2 * S * W, 0.0f);
  return block;
}

/// Copies the block's queries and their gradients in both directions, and computes dout·out.
static void begin_block(GroupBlock& block, const AttentionPass& sequence, std::size_t g,
                        std::size_t first, std::size_t tokens) {
  const std::size_t D = block.q.rows, R = block.q.cols;
  block.first = first, block.tokens = tokens;
  std::fill_n(block.q.data, 3 * D * R, 0.0f);                       // q, dout and dq
  std::fill_n(block.q_rows.data, 2 * R * block.q_rows.cols, 0.0f);  // the rows of q and dout
  std::ranges::fill(block.delta, 0.0f);
  for (std::size_t r = 0; r < block.queries(); ++r) {
    const std::size_t t = block.token(r), h = g * block.heads + r / tokens;
    const ConstRow q = sequence.q.head(h, D).row(t), dout = sequence.dout.head(h, D).row(t);
    const ConstRow out = sequence.out.head(h, D).row(t);
    float delta = 0;
    for (std::size_t d = 0; d < D; ++d) {
      block.q.row(d)[r] = block.q_rows.row(r)[d] = block.factor * q[d];
      block.dout.row(d)[r] = block.dout_rows.row(r)[d] = dout[d];
      delta += dout[d] * out[d];
    }
    block.delta[r] = delta;
  }
}

/// Calls f(s, count) for one block of keys after the other.
template <class F>
static void for_each_key_block(KeyRange keys, F f) {
  for (std::size_t s = keys.begin; s < keys.end; s += block_keys)
    f(s, std::min(block_keys, keys.end - s));
}

/// The scores of all queries with keys k.
static void make_scores(const GroupBlock& block, ConstMatrix k, Matrix scores) {
  multiply_tiles(k, block.q, scores);
  for (std::size_t i = 0; block.cap > 0 && i < k.rows; ++i)
    cap_row(scores.row(i), {Mask::none, 1, block.cap}, k.cols);
}

/// Gives masked keys a score of −infinity. Row i of the scores is key s + i.
template <class Seen>
static void mask_scores(const GroupBlock& block, Matrix scores, std::size_t s, Seen seen) {
  const std::size_t last = block.first + block.tokens - 1;
  if (seen(block.first).end >= s + scores.rows && seen(last).begin <= s) return;
  for (std::size_t r = 0; r < block.queries(); ++r) {
    const KeyRange of_token = seen(block.token(r));
    const std::size_t from = std::clamp(of_token.begin, s, s + scores.rows) - s;
    const std::size_t until = std::clamp(of_token.end, s, s + scores.rows) - s;
    for (std::size_t i = 0; i < from; ++i) scores.row(i)[r] = -infinity;
    for (std::size_t i = until; i < scores.rows; ++i) scores.row(i)[r] = -infinity;
  }
}

/// Online softmax over the block's keys, for its log-sums alone: chapter 11's m and l.
template <class Seen>
static void find_log_sums(GroupBlock& block, ConstMatrix k, KeyRange keys, Seen seen) {
  const Row sum = block.log_sums;
  std::ranges::fill(block.highest, -infinity);
  std::ranges::fill(sum, 0.0f);
  for_each_key_block(keys, [&](std::size_t s, std::size_t count) {
    const Matrix scores = block.weights.rows_from(0, count);
    make_scores(block, k.rows_from(s, count), scores);
    mask_scores(block, scores, s, seen);
    for (std::size_t r = 0; r < scores.cols; r += Lanes::size) {
      const Lanes before = Lanes::load_unaligned(&block.highest[r]);
      Lanes highest = before, added = 0.0f;
      for (std::size_t i = 0; i < count; ++i)
        highest = xsimd::max(highest, Lanes::load_unaligned(&scores.row(i)[r]));
      // A query that has seen no key yet has m = −infinity, and infinity − infinity would be NaN.
      const Lanes m = xsimd::select(highest == Lanes(-infinity), Lanes(0), highest);
      for (std::size_t i = 0; i < count; ++i)
        added = added + exp_below_0(Lanes::load_unaligned(&scores.row(i)[r]) - m);
      xsimd::fma(exp_below_0(before - m), Lanes::load_unaligned(&sum[r]), added)
          .store_unaligned(&sum[r]);
      highest.store_unaligned(&block.highest[r]);
    }
  });
  for (std::size_t r = 0; r < sum.size(); ++r) sum[r] = block.highest[r] + std::log(sum[r]);
}

/// Multiplies the gradients of capped scores by the derivative of the cap, before finish_scores
/// computes them from the weights' gradients: there they are the weight times (d − delta). A masked
/// key's weight is 0, so any derivative will do that is finite.
static void through_cap(const GroupBlock& block, ConstMatrix scores, Matrix dscores) {
  const auto times_derivative = [cap = block.cap](Lanes d, Lanes score, Lanes delta) {
    const Lanes share = xsimd::max(score / cap, Lanes(-1));
    return (d - delta) * (1 - share * share) + delta;
  };
  for (std::size_t i = 0; i < scores.rows; ++i)
    map_row(dscores.row(i), times_derivative, ConstRow(dscores.row(i)), scores.row(i), block.delta);
}

/// Scores become weights, e^(score − L), and their gradients become those of the scores.
static void finish_scores(const GroupBlock& block, Matrix weights, Matrix dscores) {
  for (std::size_t i = 0; i < weights.rows; ++i) {
    map_row(
        weights.row(i), [](Lanes score, Lanes log_sum) { return exp_below_0(score - log_sum); },
        ConstRow(weights.row(i)), block.log_sums);
    map_row(
        dscores.row(i),
        [](Lanes weight, Lanes dweight, Lanes delta) { return weight * (dweight - delta); },
        ConstRow(weights.row(i)), ConstRow(dscores.row(i)), block.delta);
  }
}

/// y += a·x, where a's columns and x's rows are the block's queries.
static void add_product(ConstMatrix a, ConstMatrix x, const GroupBlock& block, Matrix y) {
  const Matrix product = block.product.rows_from(0, a.rows);
  multiply_tiles(a.cols_from(0, block.queries()), x.rows_from(0, block.queries()), product);
  for (std::size_t i = 0; i < y.rows; ++i)
    map_row(
        y.row(i), [](Lanes y, Lanes more) { return y + more; }, ConstRow(y.row(i)),
        ConstRow(product.row(i)));
}

/// Adds to the gradients of a block of queries and of a block of keys what each gives the other. k
/// and v are rows s, s + 1 … of all keys and values.
template <class Seen>
static void take_keys(GroupBlock& block, ConstMatrix k, ConstMatrix v, std::size_t s, Seen seen) {
  const Matrix weights = block.weights.rows_from(0, k.rows);
  const Matrix dscores = block.dscores.rows_from(0, k.rows);
  make_scores(block, k, weights);
  multiply_tiles(v, block.dout, dscores);  // gradients of the weights
  mask_scores(block, weights, s, seen);
  if (block.cap > 0) through_cap(block, weights, dscores);
  finish_scores(block, weights, dscores);

  add_product(weights, block.dout_rows, block, block.dv.rows_from(s, k.rows));
  add_product(dscores, block.q_rows, block, block.dk.rows_from(s, k.rows));
  add_transposed_tiles(k, dscores, block.ones, block.dq);
}

/// Writes the gradients of the block's queries.
static void end_block(const GroupBlock& block, std::size_t g, Matrix dq) {
  const std::size_t D = block.q.rows;
  for (std::size_t r = 0; r < block.queries(); ++r) {
    const Row to = dq.head(g * block.heads + r / block.tokens, D).row(block.token(r));
    for (std::size_t d = 0; d < D; ++d) to[d] = block.factor * block.dq.row(d)[r];
  }
}

/// One group of heads of one sequence.
static void backward_of_group(const AttentionPass& sequence, std::size_t g, std::size_t N,
                              std::size_t D, const ScoreRule& rule,
                              const AttentionGradientRows& gradients, Row scratch) {
  const std::size_t T = sequence.q.rows, tokens = tokens_of_block(N);
  const auto seen = [&](std::size_t t) { return keys_seen(t, T, T, rule.mask); };
  const ConstMatrix k = sequence.k.head(g, D), v = sequence.v.head(g, D);
  GroupBlock block = begin_group(N, D, T, rule, scratch);
  for (std::size_t first = 0; first < T; first += tokens) {
    begin_block(block, sequence, g, first, std::min(tokens, T - first));
    const KeyRange of_block = keys_seen(first, block.tokens, T, T, rule.mask);
    find_log_sums(block, k, of_block, seen);
    for_each_key_block(of_block, [&](std::size_t s, std::size_t count) {
      take_keys(block, k.rows_from(s, count), v.rows_from(s, count), s, seen);
    });
    end_block(block, g, gradients.q);
  }
  for (std::size_t t = 0; t < T; ++t) {
    std::ranges::copy(block.dk.row(t).first(D), gradients.k.head(g, D).row(t).begin());
    std::ranges::copy(block.dv.row(t).first(D), gradients.v.head(g, D).row(t).begin());
  }
}

void flash_backward(const AttentionPass& pass, std::size_t B, std::size_t H, std::size_t G,
                    const ScoreRule& rule, const AttentionGradientRows& gradients,
                    FlashBackwardScratch& scratch) {
  expect_groups(H, G);
  const std::size_t rows = pass.q.rows, HD = pass.q.cols, D = HD / H;
  expect(B >= 1 && rows % B == 0, "B, the sequences", "a divisor of the rows", B);
  const std::size_t T = rows / B;
  expect_mask(T, T, rule.mask);
  expect_shape("q", pass.q, {rows, H * D});
  expect_shape("k", pass.k, {rows, G * D});
  expect_shape("v", pass.v, {rows, G * D});
  expect_shape("out", pass.out, {rows, HD});
  expect_shape("dout", pass.dout, {rows, HD});
  expect_shape("dq", gradients.q, {rows, HD});
  expect_shape("dk", gradients.k, {rows, G * D});
  expect_shape("dv", gradients.v, {rows, G * D});
  scratch.expect_room(H, G, D, T);

  for_each_task(B * G, T * D * (H / G), [&](std::size_t i, std::size_t thread) {
    const std::size_t first = i / G * T;
    backward_of_group(of_sequence(pass, first, T), i % G, H / G, D, rule,
                      {gradients.q.rows_from(first, T), gradients.k.rows_from(first, T),
                       gradients.v.rows_from(first, T)},
                      scratch.of_thread(thread));
  });
}

}  // namespace t2t
