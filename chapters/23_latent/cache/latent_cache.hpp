// A cache for latent attention: of each token, the latent c after its norm and the rotated key kʳ.
//
//   rows[position] = (c, kʳ), [K+R]
//
// One row serves all heads, for keys and for values. A prompt expands the rows into keys and values
// (attend_latent); a single new token attends to the rows themselves (fast/latent_decode.hpp). This
// cache is for one layer and one sequence; chapter 05's keeps 2·G·D elements for each token
// instead.
#pragma once

#include "23_latent/fast/latent_decode.hpp"
#include "23_latent/latent_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// Rows 0 … length − 1 are filled.
struct LatentCache {
  Tensor<2> rows;      // [S, K+R]
  std::size_t length;  // at most S, and the position of the next token
};

/// An empty cache for the positions 0 … S − 1. Throws std::invalid_argument unless S is at least 1,
/// and as expect_latent does.
LatentCache make_latent_cache(const LatentSettings& settings, std::size_t S);

/// Writes T rows after those that are filled. Throws std::invalid_argument, before anything is
/// written, unless T is at least 1, new_rows are as wide as the cache's, and length + T is at most
/// S.
void append_latent(LatentCache& cache, ConstMatrix new_rows);  // [T, K+R]

/// The filled rows, [length, K+R], valid until the cache is gone.
ConstMatrix cached_latents(const LatentCache& cache);

/// Bytes of the caches of L layers for one sequence of S positions: L·S·(K+R)·number_bytes.
std::size_t latent_cache_bytes(std::size_t L, std::size_t S, const LatentSettings& settings,
                               std::size_t number_bytes);

/// The layer for T new tokens, which follow those in the cache: appends their rows, and attends
/// from them to all rows. Returns y, [T, C]. In steps of any lengths, a text gets what
/// latent_attention gives the whole text, up to rounding. Throws as latent_queries and
/// append_latent do, and unless scratch is large enough for length + T rows, before the cache is
/// changed.
Tensor<2> latent_step(const Tensor<2>& x,  // [T, C]
                      const LatentWeights& weights, const LatentSettings& settings,
                      const RopeTable& rope, LatentCache& cache, LatentScratch& scratch);

}  // namespace t2t
