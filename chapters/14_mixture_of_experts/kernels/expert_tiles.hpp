// What a block of the experts' products multiplies in one step: 64 columns of a tile of up to 64
// rows, and of two tiles of 64 rows of weights. A block is 4 warps.
//
// Tiles are copied and swizzled as in async_tiles.hpp of chapter 11, to which rows are queries and
// weights are keys. Each warp multiplies all rows with 16 rows of each tile of weights. Only one
// warp thus reads a weight from shared memory, and an expert with few rows leaves no warp idle.
#pragma once

#include "11_flash_attention/kernels/async_tiles.hpp"

namespace t2t {

constexpr int product_warps = 4, product_threads = 32 * product_warps;
constexpr int tile_rows = 64,
              strips = tile_rows / 16;            // the tensor cores multiply 16 rows at a time
constexpr int tile_weights = 16 * product_warps;  // rows of each of the two tiles of weights
constexpr int depth = 64;                         // columns of all tiles
constexpr int copied_rows =
    tile_rows * depth / 8 / product_threads;  // by one thread, 16 bytes each

/// In shared memory.
struct ExpertTiles {
  bf16 x[tile_rows * depth];
  bf16 w[2][tile_weights * depth];
};

/// One warp's sums: [strip of 16 rows, tile of weights, 8 of its rows, a lane's part of matrix d].
using ExpertSums = float[strips][2][2][4];

/// Begins to copy all tiles' columns from `column` on. What lies outside of the matrices becomes 0.
/// rows are those of which this thread copies 16 bytes: that of its number / 8, and each 16th after
/// it. Product is one of expert_products.hpp's, and Tile its RowTile.
template <class Product, class Tile>
__device__ __forceinline__ void copy_tiles(ExpertTiles& tiles, const Product& product,
                                           const bf16* const (&rows)[copied_rows], const Tile& tile,
                                           int column, int first_out) {
  const int first = threadIdx.x / 8, chunk = threadIdx.x % 8, at = column + 8 * chunk;
  const bool inside = at < product.in;
#pragma unroll
  for (int i = 0; i < copied_rows; ++i) {
    const int r = first + i * product_threads / 8;
    copy_async_16(tiles.x + swizzled<depth>(r, chunk), rows[i] + at, inside && r < tile.rows);
  }
#pragma unroll
  for (int side = 0; side < 2; ++side) {
    const int out = first_out + side * Product::apart;
    copy_rows<depth, tile_weights, product_threads>(
        tiles.w[side], product.weights(tile.expert, side, out) + column, product.in,
        inside ? product.out - out : 0, threadIdx.x);
  }
  commit_copies();
}

/// sums += x·wᵀ for both tiles of weights.
__device__ __forceinline__ void multiply_tiles(ExpertSums& sums, const ExpertTiles& tiles,
                                               int rows) {
#pragma unroll
  for (int c = 0; c < depth / 16; ++c) {
    uint32_t b[2][4];
    for (int side = 0; side < 2; ++side)
      load_keys<depth>(b[side], tiles.w[side], threadIdx.x / 32 * 16, c);
#pragma unroll
    for (int s = 0; s < strips; ++s) {
      if (16 * s >= rows) break;
      uint32_t a[4];
      load_queries<depth>(a, tiles.x, 16 * s, c);
      for (int side = 0; side < 2; ++side) {
        mma_16x8x16(sums[s][side][0], a, b[side][0], b[side][1]);
        mma_16x8x16(sums[s][side][1], a, b[side][2], b[side][3]);
      }
    }
  }
}

}  // namespace t2t
