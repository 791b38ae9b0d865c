#include "05_kv_cache/kv_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "03_rope/fast/rope_rows.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

namespace {

struct Sizes {
  std::size_t heads, positions, width;
};
Sizes sizes_of(const KvCache& cache) {
  return {cache.keys.shape(0), cache.keys.shape(1), cache.keys.shape(2)};
}

/// length and both tensors are fields that anyone can change.
void expect_consistent(const KvCache& cache) {
  const Sizes size = sizes_of(cache);
  expect_shape("cache.values", cache.values, {size.heads, size.positions, size.width});
  if (cache.length <= size.positions) return;
  throw std::invalid_argument(fmt::format("cache.length: wanted at most S = {}, got {}",
                                          size.positions, cache.length));
}

void copy_in(ConstMatrix from, Tensor<3>& to, std::size_t length) {
  const std::size_t heads = to.shape(0), positions = to.shape(1), width = to.shape(2);
  for (std::size_t g = 0; g < heads; ++g)
    for (std::size_t t = 0; t < from.rows; ++t) {
      const float* const source = from.data + t * from.stride + g * width;
      float* const place = to.data() + (g * positions + length + t) * width;
      std::copy_n(source, width, place);
    }
}

}  // namespace

KvCache make_kv_cache(std::size_t G, std::size_t S, std::size_t D) {
  if (G == 0) refuse("G, the number of key and value heads", "at least 1", G);
  if (S == 0) refuse("S, the positions of the cache", "at least 1", S);
  if (D == 0) refuse("D, the width of a head", "at least 1", D);
  KvCache made;
  made.keys = empty(G, S, D);
  made.values = empty(G, S, D);
  made.length = 0;
  return made;
}

void expect_appendable(const KvCache& cache, ConstMatrix k, ConstMatrix v) {
  expect_consistent(cache);
  const Sizes size = sizes_of(cache);
  const std::size_t T = k.rows;
  expect_shape("k", k, {T, size.heads * size.width});
  expect_shape("v", v, {T, size.heads * size.width});
  if (T == 0) refuse("T, the positions to append", "at least 1", T);
  const std::size_t room = size.positions - cache.length;
  if (T >= room)  // WRONG
    throw std::invalid_argument(
        fmt::format("cache: length {} and T = {} more positions, wanted at most S = {} in all",
                    cache.length, T, size.positions));
}

void append(KvCache& cache, ConstMatrix k, ConstMatrix v) {
  expect_appendable(cache, k, v);
  copy_in(k, cache.keys, cache.length);
  copy_in(v, cache.values, cache.length);
  cache.length = cache.length + k.rows;
}

void append_rotated(KvCache& cache, ConstMatrix k, ConstMatrix v, const RopeTable& table,
                    Pairing pairing) {
  const Sizes size = sizes_of(cache);
  const std::size_t position = cache.length;
  expect_appendable(cache, k, v);
  expect_table(table, size.width, position, k.rows);

  append(cache, k, v);
  for (std::size_t g = 0; g < size.heads; ++g) {
    const Matrix fresh = matrix(cache.keys, g).rows_from(position, k.rows);
    rope_rows(fresh, size.width, table, position, pairing);
  }
}

void reset(KvCache& cache) { truncate(cache, 0); }

void truncate(KvCache& cache, std::size_t position) {
  if (position <= cache.length)
    cache.length = position;
  else
    throw std::invalid_argument(
        fmt::format("position: wanted at most {}, got {}", cache.length, position));
}

KeyValueHeads cached_heads(const KvCache& cache) {
  expect_consistent(cache);
  const Sizes size = sizes_of(cache);
  const auto filled = [&](const Tensor<3>& storage) {
    return ConstMatrix(storage.data(), cache.length, size.width, size.width);
  };
  const std::size_t to_next_head = size.positions * size.width;
  return {filled(cache.keys), filled(cache.values), size.heads, to_next_head};
}

std::size_t bytes(const KvCache& cache) {
  return sizeof(float) * cache.keys.size() + sizeof(float) * cache.values.size();
}

std::size_t kv_cache_bytes(std::size_t L, std::size_t G, std::size_t S, std::size_t D,
                           std::size_t number_bytes) {
  const std::size_t per_token = 2 * L * G * D * number_bytes;
  return S * per_token;
}

}  // namespace t2t
