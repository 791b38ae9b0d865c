#include "23_latent/cache/latent_cache.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "linalg.hpp"
#include "shapes.hpp"

namespace t2t {

LatentCache make_latent_cache(const LatentSettings& settings, std::size_t S) {
  expect_latent(settings);
  expect(S >= 1, "S, the positions of the cache", "at least 1", S);
  return {empty(S, settings.row_width()), 0};
}

void append_latent(LatentCache& cache, ConstMatrix new_rows) {
  const std::size_t T = new_rows.rows, S = cache.rows.shape(0);
  expect(T >= 1, "T, the new rows", "at least 1", T);
  expect_shape("new rows", new_rows, {T, cache.rows.shape(1)});
  if (T > S || cache.length > S - T)
    throw std::invalid_argument(fmt::format(
        "cache: wanted room for {} more rows, got {} of {} filled", T, cache.length, S));
  for (std::size_t t = 0; t < T; ++t)
    std::ranges::copy(new_rows.row(t), row(cache.rows, cache.length + t).begin());
  cache.length += T;
}

ConstMatrix cached_latents(const LatentCache& cache) {
  return ConstMatrix(cache.rows).rows_from(0, cache.length);
}

std::size_t latent_cache_bytes(std::size_t L, std::size_t S, const LatentSettings& settings,
                               std::size_t number_bytes) {
  return L * S * settings.row_width() * number_bytes;
}

Tensor<2> latent_step(const Tensor<2>& x, const LatentWeights& weights,
                      const LatentSettings& settings, const RopeTable& rope, LatentCache& cache,
                      LatentScratch& scratch) {
  expect_latent_room(scratch, settings, cache.length + x.shape(0));
  // The new tokens' queries and rows, from the position that follows the cache.
  const Tensor<2> q = latent_queries(x, weights, settings, rope, cache.length);
  append_latent(cache, latent_rows(x, weights, settings, rope, cache.length));
  const ConstMatrix rows = cached_latents(cache);  // [length, K+R]

  // Several tokens share the expanded keys and values. One token attends to the latents themselves.
  if (x.shape(0) > 1)
    return matmul_bt(attend_latent(q, copy_of(rows), weights.w_kvb, settings), weights.w_o);
  Tensor<2> heads = empty(1, settings.H * settings.Dv);  // [1, H·Dv]
  latent_decode(row(q, 0), rows, weights.w_kvb, settings, row(heads, 0), scratch);
  return matmul_bt(heads, weights.w_o);  // [1, C]
}

}  // namespace t2t
