#include "05_kv_cache/kv_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "03_rope/fast/rope_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D) {
  expect(G >= 1, "G, the number of key and value heads", "at least 1", G);
  expect(S >= 1, "S, the positions of the cache", "at least 1", S);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  return {empty(G, S, D), empty(G, S, D), 0};
}

/// Throws std::invalid_argument unless values have the shape of keys and length is at most S: both
/// are fields that any code can change.
static void expect_whole(const KvCache& cache) {
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  expect_shape("cache.values", cache.values, {G, S, D});
  if (cache.length > S)
    throw std::invalid_argument(
        fmt::format("cache.length: wanted at most S = {}, got {}", S, cache.length));
}

void expect_appendable(const KvCache& cache, ConstMatrix k, ConstMatrix v) {
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  const std::size_t T = k.rows;
  expect_whole(cache);
  expect_shape("k", k, {T, G * D});
  expect_shape("v", v, {T, G * D});
  expect(T >= 1, "T, the positions to append", "at least 1", T);
  if (T > S - cache.length)
    throw std::invalid_argument(
        fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                    cache.length, T, S));
}

/// Copies head g of token t, D elements of row t of x, to row length + t of matrix g of storage.
static void write_rows(ConstMatrix x,         // [T, G·D]
                       std::size_t length,    // rows that are filled already
                       Tensor<3>& storage) {  // [G, S, D]
  const std::size_t G = storage.shape(0), D = storage.shape(2);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t g = 0; g < G; ++g)
      std::ranges::copy(x.head(g, D).row(t), matrix(storage, g).row(length + t).begin());
  });
}

void append(KvCache& cache, ConstMatrix k, ConstMatrix v) {
  expect_appendable(cache, k, v);
  write_rows(k, cache.length, cache.keys);
  write_rows(v, cache.length, cache.values);
  cache.length += k.rows;
}

void append_rotated(KvCache& cache, ConstMatrix k, ConstMatrix v, const RopeTable& table,
                    Pairing pairing) {
  const std::size_t T = k.rows, G = cache.keys.shape(0), D = cache.keys.shape(2);
  const std::size_t first = cache.length;
  expect_appendable(cache, k, v);
  expect_table(table, D, first, T);

  append(cache, k, v);
  for (std::size_t g = 0; g < G; ++g)
    rope_rows(matrix(cache.keys, g).rows_from(first, T), D, table, first, pairing);
}

void reset(KvCache& cache) { cache.length = 0; }

void truncate(KvCache& cache, std::size_t position) {
  if (position > cache.length)
    throw std::invalid_argument(
        fmt::format("position: wanted at most {}, got {}", cache.length, position));
  cache.length = position;
}

KeyValueHeads cached_heads(const KvCache& cache) {
  const std::size_t G = cache.keys.shape(0), S = cache.keys.shape(1), D = cache.keys.shape(2);
  expect_whole(cache);
  const ConstMatrix keys = matrix(cache.keys, 0).rows_from(0, cache.length);      // [length, D]
  const ConstMatrix values = matrix(cache.values, 0).rows_from(0, cache.length);  // [length, D]
  return {keys, values, G, S * D};  // from one head's first element to the next head's: S·D
}

std::size_t bytes(const KvCache& cache) {
  return (cache.keys.size() + cache.values.size()) * sizeof(float);
}

std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes) {
  return 2 * L * G * S * D * number_bytes;
}

}  // namespace t2t
