#include "05_kv_cache/concatenated_cache.hpp"

#include <algorithm>
#include <utility>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

ConcatenatedCache make_concatenated_cache(std::size_t G, std::size_t D) {
  expect(G >= 1, "G, the number of key and value heads", "at least 1", G);
  expect(D >= 1, "D, the width of a head", "at least 1", D);
  return {empty(G, 0, D), empty(G, 0, D)};
}

/// The rows of old, head by head, each followed by the same head of x: [G, length + T, D].
static Tensor<3> concatenated(const Tensor<3>& old, ConstMatrix x) {
  const std::size_t G = old.shape(0), length = old.shape(1), D = old.shape(2), T = x.rows;
  Tensor<3> all = empty(G, length + T, D);
  for_each_row(G, (length + T) * D, [&](std::size_t g) {
    std::copy_n(old.data() + g * length * D, length * D, matrix(all, g).data);
    for (std::size_t t = 0; t < T; ++t)
      std::ranges::copy(x.head(g, D).row(t), matrix(all, g).row(length + t).begin());
  });
  return all;
}

std::size_t concatenate(ConcatenatedCache& cache, ConstMatrix k, ConstMatrix v) {
  const std::size_t G = cache.keys.shape(0), D = cache.keys.shape(2);
  expect_shape("k", k, {k.rows, G * D});
  expect_shape("v", v, {k.rows, G * D});
  Tensor<3> keys = concatenated(cache.keys, k), values = concatenated(cache.values, v);
  cache = {std::move(keys), std::move(values)};
  return (cache.keys.size() + cache.values.size()) * sizeof(float);
}

KeyValueHeads concatenated_heads(const ConcatenatedCache& cache) {
  const std::size_t G = cache.keys.shape(0), length = cache.keys.shape(1), D = cache.keys.shape(2);
  return {matrix(cache.keys, 0), matrix(cache.values, 0), G, length * D};
}

}  // namespace t2t
