// One token's attention over the cached rows (c, kʳ) in the absorbed form, in place.
//
//   q̃_h = qⁿ_h·U_h      P = softmax of f·(q̃_h, qʳ_h)·(c, kʳ)ᵀ
//   z_h = P·c           out_h = z_h·Y_hᵀ
//
// The rows are cut into stretches short enough for a core's second-level cache, and all H heads use
// a stretch while it lies there. Within a stretch this is chapter 06's attend_stretch with keys of
// K + R elements and, as values, the first K elements of the same rows; its join_stretches joins
// the stretches. The tests compare it with attend_absorbed in absorbed.hpp.
#pragma once

#include "23_latent/latent_attention.hpp"
#include "tensor.hpp"

namespace t2t {

/// Rows of a stretch, at most. 128 rows of 512 + 64 floats are 288 KiB.
constexpr std::size_t latent_stretch = 128;

/// Scratch memory for latent_decode: made once, used for every layer and token.
struct LatentScratch {
  Tensor<2> absorbed;   // [H, K+R]: (q̃, qʳ)
  Tensor<2> scores;     // [threads, H·latent_stretch]
  Tensor<2> stretches;  // [H·P, K]: row h·P + p is head h's mean over stretch p
  Tensor<2> log_sums;   // [H, P]: log Σ e^score of each head over each stretch
  Tensor<2> z;          // [H, K]

  /// For calls of up to S cached rows, on as many threads as OpenMP uses now. Throws as
  /// expect_latent does.
  LatentScratch(const LatentSettings& settings, std::size_t S);
};
/// Throws std::invalid_argument, naming the sizes, unless scratch is large enough for S cached
/// rows.
void expect_latent_room(const LatentScratch& scratch, const LatentSettings& settings,
                        std::size_t S);

/// Allocates nothing. Throws std::invalid_argument, before anything is written, when shapes
/// disagree or there are no rows, and as expect_latent_room does.
void latent_decode(ConstRow q,         // [H·(N+R)]
                   ConstMatrix rows,   // [S, K+R]
                   ConstMatrix w_kvb,  // [H·(N+Dv), K]
                   const LatentSettings& settings,
                   Row out,  // [H·Dv]
                   LatentScratch& scratch);

}  // namespace t2t
