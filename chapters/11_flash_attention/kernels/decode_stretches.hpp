// Decode in stretches: what a block does with the keys of one stretch, and how stretches are
// joined. Rung 5 and chapter 15 share this file. They differ in where a stretch begins, and in how
// its keys reach shared memory.
//
// A block has 4 warps and up to 16 rows of queries, the query heads of a group. Each warp processes
// its own keys in steps of 16, while later ones are being copied. At the end the sums of the warps
// meet in shared memory. A stretch yields a mean, already divided, and a log-sum: log2 of the sum
// of exp2(score·scale), with log2(e) / √D as scale. A stretch without keys has log-sum -infinity.
#pragma once

#include <cstddef>

#include "04_causal_attention/kernels/attention_call.hpp"
#include "11_flash_attention/kernels/async_tiles.hpp"
#include "11_flash_attention/kernels/fragments.hpp"

namespace t2t {

constexpr int decode_warps = 4, decode_threads = 32 * decode_warps;
constexpr int decode_stages = 3;  // steps for which a warp has tiles of keys and of values
constexpr int packed_rows = 16;   // rows of queries of a block
constexpr int step_keys = 16;     // keys of a warp's step

/// A block's results for the second kernel: for each stretch of each row [B, T, H] a mean [D] and a
/// log-sum, to base 2.
struct Stretches {
  float* means;     // [B, T, H, P, D]
  float* log_sums;  // [B, T, H, P]
};

/// One step of a warp, keys s to s + 15, which are in its tiles. Row `half` of a lane sees the keys
/// before seen[half].
template <int D>
__device__ __forceinline__ void attend_step(const bf16* k_tile, const bf16* v_tile,
                                            const uint32_t (&q)[D / 16][4], int s,
                                            const int (&seen)[2], float scale,
                                            float (&mean)[D / 8][4], OnlineRows& rows) {
  uint32_t b[4], a[4];
  float scores[2][4] = {};
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    load_keys<D>(b, k_tile, 0, c);
    mma_16x8x16(scores[0], q[c], b[0], b[1]);
    mma_16x8x16(scores[1], q[c], b[2], b[3]);
  }
  if (s + step_keys > min(seen[0], seen[1])) mask_scores(scores, s, seen);
  online_softmax(scores, mean, rows, scale);
  pack_weights(a, scores[0], scores[1]);
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    load_values<D>(b, v_tile, 0, c);
    mma_16x8x16(mean[2 * c], a, b[0], b[1]);
    mma_16x8x16(mean[2 * c + 1], a, b[2], b[3]);
  }
}

/// The sums of a block's warps, in shared memory: for each row the exponent of 2 that its sums are
/// relative to, the sum of its weights, and its mean, not yet divided.
template <int D>
struct WarpSums {
  float highest[decode_warps][packed_rows];
  float sums[decode_warps][packed_rows];
  float means[decode_warps][packed_rows][D];
};

/// Stores this warp's sums.
template <int D>
__device__ __forceinline__ void store_sums(const float (&mean)[D / 8][4], const OnlineRows& rows,
                                           float scale, WarpSums<D>& shared) {
  const int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  for (int half = 0; half < 2; ++half) {
    const int r = 8 * half + lane / 4;
    const float sum = whole_sum(rows, half);
    if (lane % 4 == 0) shared.highest[w][r] = rows.highest[half] * scale, shared.sums[w][r] = sum;
    for (int n = 0; n < D / 8; ++n)
      for (int i = 0; i < 2; ++i)
        shared.means[w][r][8 * n + lane % 4 * 2 + i] = mean[n][2 * half + i];
  }
}

/// The sum of a row's weights over all warps, and channel d of weights times values. Both are
/// relative to 2^base. The sum is 0 when no warp had a key for the row.
struct RowSum {
  float base, sum, total;
};
template <int D>
__device__ __forceinline__ RowSum sum_warps(const WarpSums<D>& shared, int r, int d) {
  float top = -INFINITY, sum = 0, total = 0;
  for (int w = 0; w < decode_warps; ++w) top = fmaxf(top, shared.highest[w][r]);
  const float base = top == -INFINITY ? 0 : top;
  for (int w = 0; w < decode_warps; ++w) {
    const float weight = exp2f(shared.highest[w][r] - base);
    sum += weight * shared.sums[w][r];
    total += weight * shared.means[w][r][d];
  }
  return {base, sum, total};
}

/// Shared memory of a block: the tiles of its warps, and later its sums.
template <int D>
constexpr int decode_shared() {
  constexpr int tiles = decode_warps * decode_stages * 2 * step_keys * D * int(sizeof(bf16));
  static_assert(sizeof(WarpSums<D>) <= tiles);
  return tiles;
}

/// What the second kernel joins. The stretches of sequence b are those of its T·H rows, P for each
/// row: P = splits for all sequences, or, if begin is not null, begin[b + 1] − begin[b] for
/// sequence b. The sequences lie one after the other.
struct DecodeJoin {
  Stretches in;
  bf16* out;  // [B, T, H, D]
  Strides out_strides;
  int B, T, H, D;
  int splits;
  const int* begin;           // [B + 1], in device memory; with T = 1
  const int* rows = nullptr;  // [B], there too: sequences' rows of out
};

/// Writes a row of out for each of the B·T·H rows. Checks nothing.
void join_decode(const DecodeJoin& join);

}  // namespace t2t
