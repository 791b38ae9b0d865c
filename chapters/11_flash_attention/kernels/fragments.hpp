// Online softmax in the layout of the tensor cores. Rungs 3 to 10 share this file.
//
//   matrix d [16, 8] of float32:  lane l has rows l/4 (d[0], d[1]) and l/4 + 8 (d[2], d[3]),
//                                 columns 2·(l%4) and the next
//   matrix a [16, 16] of bf16:    the same twice: a[0], a[1] in columns 0 to 7,
//                                 a[2], a[3] in columns 8 to 15
//
// 4 lanes hold a row, and each lane holds parts of 2 of the warp's 16 rows, which `half` counts.
// Two matrices d of weights, packed to bf16, are one matrix a of the product with the values:
// weights stay in the lane that computed them. exp(x / √D) is exp2(scale·x) with scale = log2(e) /
// √D, which takes one multiply-add together with the subtraction of the highest score.
#pragma once

#include "cuda/tensor_core.hpp"

namespace t2t {

/// m and l of a lane's two rows, carried from one tile of keys to the next.
struct OnlineRows {
  float highest[2] = {-INFINITY, -INFINITY};  // m: of q·k, not yet scaled, or up to 8/scale below
  float sum[2] = {0, 0};                      // over the columns that this lane holds
};

/// log2(e) / √D
inline float scale_log2(int D) { return 1.44269504f / sqrtf(float(D)); }

/// Loads matrix a from the rows at row[half], columns `column` to `column` + 15. A null pointer
/// stands for a row of zeros.
__device__ __forceinline__ void load_rows(uint32_t (&a)[4], const bf16* const (&row)[2],
                                          int column) {
  for (int i = 0; i < 4; ++i) {
    const bf16* from = row[i % 2];
    const int at = column + 8 * (i / 2) + threadIdx.x % 4 * 2;
    a[i] = from ? *reinterpret_cast<const uint32_t*>(from + at) : 0;
  }
}

/// Masks keys from seen[half] on for the row of each half. The first column is key first_key.
template <int Blocks>
__device__ __forceinline__ void mask_scores(float (&scores)[Blocks][4], int first_key,
                                            const int (&seen)[2]) {
  const int key = first_key + threadIdx.x % 4 * 2;
#pragma unroll
  for (int n = 0; n < Blocks; ++n)
    for (int i = 0; i < 4; ++i)
      if (key + 8 * n + i % 2 >= seen[i / 2]) scores[n][i] = -INFINITY;
}

/// Raises m to the highest of one tile's scores [16, 8·Blocks]. Any m does, as long as it is the
/// same for l and o: it cancels when o is divided by l. Therefore m rises only when a weight would
/// otherwise be above 2^8. Weights up to 256 lose no digits, since bf16 and float32 are
/// floating-point numbers. If m rose in any row of the warp, l is rescaled, and
/// rescale_mean(half, factor) is called for both halves. base becomes m·scale.
template <int Blocks, class RescaleMean>
__device__ __forceinline__ void raise_highest(const float (&scores)[Blocks][4], OnlineRows& rows,
                                              float scale, float (&base)[2],
                                              const RescaleMean& rescale_mean) {
  constexpr float most_rise = 8;  // of a weight's exponent
  float m[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float top = -INFINITY;
    for (int n = 0; n < Blocks; ++n)
      top = fmaxf(top, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
    // At first m is -infinity, and any score rises above it.
    m[half] = top * scale > rows.highest[half] * scale + most_rise ? top : rows.highest[half];
    // A row that has seen no key yet: -inf minus -inf would be NaN.
    base[half] = m[half] == -INFINITY ? 0 : m[half] * scale;
  }
  if (__any_sync(~0u, m[0] != rows.highest[0] || m[1] != rows.highest[1])) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float rescale = exp2_fast(rows.highest[half] * scale - base[half]);
      rows.highest[half] = m[half];
      rows.sum[half] *= rescale;
      rescale_mean(half, rescale);
    }
  }
}

/// Turns one tile's scores into weights, 2^(score·scale - base), and adds them to l.
template <int Blocks>
__device__ __forceinline__ void scores_to_weights(float (&scores)[Blocks][4], OnlineRows& rows,
                                                  float scale, const float (&base)[2]) {
#pragma unroll
  for (int n = 0; n < Blocks; ++n)
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = exp2_fast(scores[n][i] * scale - base[i / 2]);
      rows.sum[i / 2] += scores[n][i];
    }
}

/// One step of online softmax: turns one tile's scores into weights. The caller rescales the mean,
/// if rescale_mean(half, factor) is called.
template <int Blocks, class RescaleMean>
__device__ __forceinline__ void softmax_step(float (&scores)[Blocks][4], OnlineRows& rows,
                                             float scale, const RescaleMean& rescale_mean) {
  float base[2];
  raise_highest(scores, rows, scale, base, rescale_mean);
  scores_to_weights(scores, rows, scale, base);
}

/// The same, and rescales the mean.
template <int Blocks, int Channels>
__device__ __forceinline__ void online_softmax(float (&scores)[Blocks][4],
                                               float (&mean)[Channels][4], OnlineRows& rows,
                                               float scale) {
  softmax_step(scores, rows, scale, [&](int half, float rescale) {
    for (int n = 0; n < Channels; ++n)
      mean[n][2 * half] *= rescale, mean[n][2 * half + 1] *= rescale;
  });
}

/// Packs the weights of 8 keys (low) and of the next 8 (high) into one matrix a.
__device__ __forceinline__ void pack_weights(uint32_t (&a)[4], const float (&low)[4],
                                             const float (&high)[4]) {
  a[0] = pack_bf16(low[0], low[1]), a[1] = pack_bf16(low[2], low[3]);
  a[2] = pack_bf16(high[0], high[1]), a[3] = pack_bf16(high[2], high[3]);
}

/// A row's l, summed over its 4 lanes. Called once, after the last tile.
__device__ __forceinline__ float whole_sum(const OnlineRows& rows, int half) {
  float sum = rows.sum[half];
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  return sum;
}

}  // namespace t2t
