#include "05_kv_cache/kv_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D) {
  expect(G >= 1, "G, the number of key and value heads", "at least 1", double(G));
  expect(S >= 1, "S, the positions of the cache", "at least 1", double(S));
  expect(D >= 1, "D, the width of a head", "at least 1", double(D));
  return {xt::zeros<float>({G, S, D}), xt::zeros<float>({G, S, D}), 0};
}

/// Everything that could go wrong is looked at before the first number is written.
static void expect_room(const KvCache& cache, ConstMatrix k, ConstMatrix v) {
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  const std::size_t T = k.rows;
  expect_shape("cache.values", cache.values, {G, S, D});
  expect_shape("k", k, {T, G * D});
  expect_shape("v", v, {T, G * D});
  expect(T >= 1, "T, the positions to append", "at least 1", double(T));
  if (cache.length > S || T > S - cache.length)
    throw std::invalid_argument(
        fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                    cache.length, T, S));
}

/// x's heads, each to its own matrix of the cache, rows from `length` on.
static void write_rows(ConstMatrix x, std::size_t length, Tensor<3>& cache) {
  const std::size_t D = cache.shape(2);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t g = 0; g < cache.shape(0); ++g)
      std::ranges::copy(x.head(g, D).row(t), matrix(cache, g).row(length + t).begin());
  });
}

void append(KvCache& cache, ConstMatrix k, ConstMatrix v) {
  expect_room(cache, k, v);
  write_rows(k, cache.length, cache.keys);
  write_rows(v, cache.length, cache.values);
  cache.length += k.rows;
}

void append_turned(KvCache& cache, ConstMatrix k, ConstMatrix v, const RopeTable& table,
                   Pairing pairing) {
  const std::size_t T = k.rows, D = cache.keys.shape(2), start = cache.length;
  expect_room(cache, k, v);

  // No rows, turned from position start + T, write nothing, and throw if the table ends before.
  const Matrix no_rows = matrix(cache.keys, 0).rows_from(0, 0);
  rope_rows(no_rows, D, table, start + T, pairing);

  append(cache, k, v);
  for (std::size_t g = 0; g < cache.keys.shape(0); ++g)
    rope_rows(matrix(cache.keys, g).rows_from(start, T), D, table, start, pairing);
}

void reset(KvCache& cache) { cache.length = 0; }

void truncate(KvCache& cache, std::size_t position) {
  if (position > cache.length)
    throw std::invalid_argument(fmt::format(
        "position: wanted at most the cache's length {}, got {}", cache.length, position));
  cache.length = position;
}

static ConstMatrix filled(const Tensor<3>& x, std::size_t g, std::size_t length) {
  if (g >= x.shape(0))
    throw std::invalid_argument(
        fmt::format("g: wanted a group from 0 to {}, got {}", x.shape(0) - 1, g));
  return matrix(x, g).rows_from(0, length);
}

ConstMatrix cached_keys(const KvCache& cache, std::size_t g) {
  return filled(cache.keys, g, cache.length);
}

ConstMatrix cached_values(const KvCache& cache, std::size_t g) {
  return filled(cache.values, g, cache.length);
}

std::size_t bytes(const KvCache& cache) {
  return (cache.keys.size() + cache.values.size()) * sizeof(float);
}

std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes) {
  return 2 * L * G * S * D * number_bytes;
}

/// Shapes are checked here, once: inside the loop over the cores nothing may throw.
static void expect_cached_attention(ConstMatrix q, const KvCache& cache, Mask mask, Matrix out,
                                    const AttentionScratch& scratch) {
  const std::size_t G = cache.keys.shape(0), D = cache.keys.shape(2);
  const std::size_t T = q.rows, length = cache.length;
  expect_mask(T, length, mask);
  expect_shape("q", q, {T, G * D});
  expect_shape("out", out, {T, G * D});
  if (scratch.floats() < attend_scratch(T, length) || scratch.threads() < thread_count())
    throw std::invalid_argument(fmt::format(
        "scratch: wanted {} floats for each of {} threads ({} queries, {} keys), got "
        "{} for each of {}",
        attend_scratch(T, length), thread_count(), T, length, scratch.floats(), scratch.threads()));
}

void cached_attention_rows(ConstMatrix q, const KvCache& cache, Mask mask, Matrix out,
                           AttentionScratch& scratch) {
  expect_cached_attention(q, cache, mask, out, scratch);
  const std::size_t H = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  const ConstMatrix keys = cached_keys(cache, 0), values = cached_values(cache, 0);  // [length, D]
  attend_heads(q, {keys, values, H, S * D}, H, mask, out, scratch.rows());
}

}  // namespace t2t
