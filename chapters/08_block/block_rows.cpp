#include <fmt/core.h>

#include <stdexcept>
#include <utility>

#include "02_normalization/layer_norm.hpp"
#include "02_normalization/rms_norm.hpp"
#include "08_block/block.hpp"
#include "linalg.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

BlockScratch block_scratch(const BlockSettings& settings, std::size_t T_max, std::size_t S,
                           PrefillAttention prefill) {
  expect_settings(settings);
  expect(T_max >= 1, "T_max, the tokens of a call", "at least 1", double(T_max));
  expect(S >= 1, "S, the positions of the cache", "at least 1", double(S));
  const std::size_t C = settings.C, H = settings.H, G = settings.G, D = settings.D, F = settings.F;
  const bool gated = is_gated(settings.activation);
  return {.T_max = T_max,
          .S = S,
          .threads = thread_count(),
          .normed = empty(T_max, C),
          .q = empty(T_max, H * D),
          .k = empty(T_max, G * D),
          .v = empty(T_max, G * D),
          .heads = empty(T_max, H * D),
          .added = empty(T_max, C),
          .attention = GroupedScratch(prefill ? 1 : T_max, S, H, D),
          .feed_forward = {empty(gated ? T_max : 0, gated ? F : 0), empty(T_max, F)},
          .prefill = std::move(prefill)};
}

/// Throws unless the scratch was made for these settings, and for calls as large as this one.
static void expect_scratch(const BlockScratch& scratch, const BlockSettings& settings,
                           std::size_t T, std::size_t S) {
  const std::size_t T_max = scratch.T_max, F = settings.F;
  if (T > T_max || S > scratch.S || thread_count() > scratch.threads)
    throw std::invalid_argument(fmt::format(
        "scratch: made for T_max = {}, S = {} and {} threads, wanted T_max = {}, S = {} and {}",
        T_max, scratch.S, scratch.threads, T, S, thread_count()));
  const bool gated = is_gated(settings.activation);
  expect_shape("scratch.normed", scratch.normed, {T_max, settings.C});
  expect_shape("scratch.q", scratch.q, {T_max, settings.H * settings.D});
  expect_shape("scratch.k", scratch.k, {T_max, settings.G * settings.D});
  expect_shape("scratch.feed_forward.gate", scratch.feed_forward.gate,
               {gated ? T_max : 0, gated ? F : 0});
  expect_shape("scratch.feed_forward.up", scratch.feed_forward.up, {T_max, F});
  expect_room(scratch.attention, scratch.prefill ? 1 : T, S, settings.H, settings.G, settings.D);
}

/// Everything that could go wrong, looked at before anything is written.
static void expect_block(ConstMatrix x, const BlockWeights& weights, const BlockSettings& settings,
                         const RopeTable& table, const KvCache& cache,
                         const BlockScratch& scratch) {
  const std::size_t T = x.rows, D = settings.D;
  const std::size_t S = cache.keys.shape(1);
  expect_settings(settings);
  expect_weights(weights, settings);
  expect_shape("x", x, {T, settings.C});
  expect(T >= 1, "T, the tokens of x", "at least 1", double(T));

  expect_shape("cache.keys", cache.keys, {settings.G, S, D});
  expect_shape("cache.values", cache.values, {settings.G, S, D});
  if (cache.length > S || T > S - cache.length)
    throw std::invalid_argument(
        fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                    cache.length, T, S));

  // Turning no rows, from the position after the last, throws if the table ends before.
  if (settings.turned) rope_rows({nullptr, 0, D, D}, D, table, cache.length + T, settings.pairing);

  expect_scratch(scratch, settings, T, cache.length + T);
}

void norm_rows(ConstMatrix x, const NormWeights& norm, const BlockSettings& settings, Matrix y) {
  if (settings.norm == Norm::rms)
    rms_norm_rows(x, row(norm.gain), settings.eps, y);
  else
    layer_norm_rows(x, row(norm.gain), row(norm.bias), settings.eps, y);
}

/// y = x·wᵀ, and the bias where there is one.
static void project_rows(ConstMatrix x, const Tensor<2>& w, const Tensor<1>& b, Matrix y) {
  matmul_bt(x, w, y);
  if (b.size() == 0) return;
  for_each_row(y.rows, y.cols, [&](std::size_t t) {
    const Row y_t = y.row(t);
    for (std::size_t c = 0; c < y_t.size(); ++c) y_t[c] += b(c);
  });
}

/// The residual sum: x += added.
static void add_rows(ConstMatrix added, Matrix x) {
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    const Row x_t = x.row(t);
    const ConstRow added_t = added.row(t);
#pragma omp simd
    for (std::size_t c = 0; c < x_t.size(); ++c) x_t[c] += added_t[c];
  });
}

/// Attention's part: x is what it reads, added what it would add to the stream.
static void attention_part(ConstMatrix x, const BlockWeights& weights,
                           const BlockSettings& settings, const RopeTable& table, KvCache& cache,
                           BlockScratch& scratch, const Trace& trace, Matrix added) {
  const std::size_t T = x.rows, D = settings.D, start = cache.length;
  const Matrix q = Matrix(scratch.q).rows_from(0, T);          // [T, H·D]
  const Matrix k = Matrix(scratch.k).rows_from(0, T);          // [T, G·D]
  const Matrix v = Matrix(scratch.v).rows_from(0, T);          // [T, G·D]
  const Matrix heads = Matrix(scratch.heads).rows_from(0, T);  // [T, H·D]

  project_rows(x, weights.w_q, weights.b_q, q);
  project_rows(x, weights.w_k, weights.b_k, k);
  project_rows(x, weights.w_v, weights.b_v, v);
  tell(trace, "q", q);
  tell(trace, "k", k);
  tell(trace, "v", v);

  // Queries and keys are turned to where they stand; what is said does not depend on where.
  if (settings.turned) {
    rope_rows(q, D, table, start, settings.pairing);
    rope_rows(k, D, table, start, settings.pairing);
    tell(trace, "q_turned", q);
    tell(trace, "k_turned", k);
  }

  // From the cache on, the new tokens are no different from the old ones.
  append(cache, k, v);
  if (T > 1 && scratch.prefill)
    scratch.prefill(q, cache, settings.H, heads);
  else
    grouped_attention_rows(q, cache, settings.H, heads, scratch.attention);
  tell(trace, "heads", heads);
  project_rows(heads, weights.w_o, weights.b_o, added);
  tell(trace, "attention", added);
}

/// The feed-forward network's part.
static void feed_forward_part(ConstMatrix x, const BlockWeights& weights,
                              const BlockSettings& settings, FeedForwardScratch& scratch,
                              const Trace& trace, Matrix added) {
  feed_forward_rows(x, weights.feed_forward, settings.activation, scratch, added);
  if (is_gated(settings.activation)) tell(trace, "gate", Matrix(scratch.gate).rows_from(0, x.rows));
  tell(trace, "hidden", Matrix(scratch.up).rows_from(0, x.rows));
  tell(trace, "feed_forward", added);
}

void block_rows(Matrix x, const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table, KvCache& cache, BlockScratch& scratch, const Trace& trace) {
  expect_block(x, weights, settings, table, cache, scratch);
  const bool norm_before = settings.norm_place == NormPlace::before;
  const Matrix normed = Matrix(scratch.normed).rows_from(0, x.rows);  // [T, C]
  const Matrix added = Matrix(scratch.added).rows_from(0, x.rows);    // [T, C]
  const auto norm = [&](const char* name, const NormWeights& gains, Matrix y) {
    norm_rows(x, gains, settings, y);
    tell(trace, name, y);
  };

  // Attention reads the stream, in pre-norm brought to one size, and adds to it.
  if (norm_before) norm("attention_norm", weights.attention_norm, normed);
  attention_part(norm_before ? normed : x, weights, settings, table, cache, scratch, trace, added);
  add_rows(added, x);
  tell(trace, "x_plus_attention", x);
  if (!norm_before) norm("attention_norm", weights.attention_norm, x);

  // So does the feed-forward network, each token on its own.
  if (norm_before) norm("feed_forward_norm", weights.feed_forward_norm, normed);
  feed_forward_part(norm_before ? normed : x, weights, settings, scratch.feed_forward, trace,
                    added);
  add_rows(added, x);
  tell(trace, "x_plus_feed_forward", x);
  if (!norm_before) norm("feed_forward_norm", weights.feed_forward_norm, x);
}

}  // namespace t2t
