// What a warp of rungs 4 and 6 does with its 32 queries: it multiplies them by a tile of keys,
// their weights by a tile of values, and stores the results. A tile lies in D / Width parts, one
// behind the other, with Width channels of each row: rung 4's tiles are one part.
#pragma once

#include "11_flash_attention/kernels/async_tiles.hpp"
#include "11_flash_attention/kernels/fragments.hpp"

namespace t2t {

constexpr int tile_warps = 4, tile_threads = 32 * tile_warps, warp_queries = 32;
constexpr int tile_queries = warp_queries * tile_warps;

/// The part of a tile of `rows` rows that holds channels 16·c to 16·c + 15.
template <int Width, int rows>
__device__ __forceinline__ const bf16* part_of(const bf16* tile, int c) {
  return tile + c / (Width / 16) * rows * Width;
}

/// The index of the first element of chunk `chunk` of row `row`, in a tile of `rows` rows.
template <int Width, int rows>
__device__ __forceinline__ int chunk_in(int row, int chunk) {
  return chunk / (Width / 8) * rows * Width + swizzled<Width>(row, chunk % (Width / 8));
}

/// scores [32, keys] += q·kᵀ. q holds the queries; with Kept = 1 they are loaded again for each 16
/// channels.
template <int D, int Keys, int Kept, int Width = D>
__device__ __forceinline__ void multiply_keys(float (&scores)[2][Keys / 8][4],
                                              uint32_t (&q)[Kept][2][4], const bf16* q_tile,
                                              const bf16* k_tile) {
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    uint32_t(&a)[2][4] = q[c % Kept];
    if (Kept == 1)
      for (int r = 0; r < 2; ++r)
        load_queries<Width>(a[r], part_of<Width, tile_queries>(q_tile, c), 16 * r,
                            c % (Width / 16));
#pragma unroll
    for (int n = 0; n < Keys / 16; ++n) {
      uint32_t b[4];
      load_keys<Width>(b, part_of<Width, Keys>(k_tile, c), 16 * n, c % (Width / 16));
      for (int r = 0; r < 2; ++r) {
        mma_16x8x16(scores[r][2 * n], a[r], b[0], b[1]);
        mma_16x8x16(scores[r][2 * n + 1], a[r], b[2], b[3]);
      }
    }
  }
}

/// mean [32, D] += weights·v
template <int D, int Keys, int Width = D>
__device__ __forceinline__ void multiply_values(float (&mean)[2][D / 8][4],
                                                const float (&weights)[2][Keys / 8][4],
                                                const bf16* v_tile) {
#pragma unroll
  for (int s = 0; s < Keys / 16; ++s) {
    uint32_t a[2][4];
    for (int r = 0; r < 2; ++r) pack_weights(a[r], weights[r][2 * s], weights[r][2 * s + 1]);
#pragma unroll
    for (int n = 0; n < D / 16; ++n) {
      uint32_t b[4];
      load_values<Width>(b, part_of<Width, Keys>(v_tile, n), 16 * s, n % (Width / 16));
      for (int r = 0; r < 2; ++r) {
        mma_16x8x16(mean[r][2 * n], a[r], b[0], b[1]);
        mma_16x8x16(mean[r][2 * n + 1], a[r], b[2], b[3]);
      }
    }
  }
}

/// Writes o / l of a warp's 16 rows to rows `row` to `row` + 15 of a tile of `rows` rows. Other
/// lanes may read them after a __syncwarp.
template <int D, int Width, int rows>
__device__ __forceinline__ void write_mean(bf16* tile, int row, const float (&mean)[D / 8][4],
                                           const OnlineRows& of_rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float share = 1 / whole_sum(of_rows, half);
    for (int n = 0; n < D / 8; ++n) {
      bf16* at = tile + chunk_in<Width, rows>(row + 8 * half + lane / 4, n) + lane % 4 * 2;
      *reinterpret_cast<uint32_t*>(at) =
          pack_bf16(mean[n][2 * half] * share, mean[n][2 * half + 1] * share);
    }
  }
}

/// Copies `count` rows of a tile, from `row` on, to memory: each thread of a warp writes 16 bytes,
/// next to its neighbour's. Rows from `inside` on are not there.
template <int D, int Width, int rows, int count>
__device__ __forceinline__ void store_rows(const bf16* tile, int row, bf16* out, long stride,
                                           int inside) {
  for (int i = threadIdx.x % 32; i < count * D / 8; i += 32) {
    const int r = i / (D / 8), chunk = i % (D / 8);
    if (r < inside)
      *reinterpret_cast<uint4*>(out + r * stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(tile + chunk_in<Width, rows>(row + r, chunk));
  }
}

}  // namespace t2t
