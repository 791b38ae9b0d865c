// The kernel of a product of many rows, on the tensor cores, in tiles of 128 rows of x and 64 rows
// of weights. How a tile of weights comes into shared memory is the business of `Weights`:
// many_rows.cu copies bf16, and chapter 12's packed weights are unpacked on the way.
//
// Changed from product_kernel.cu: rung 4's tiles and fragments take the place of float32 sums in
// registers. x·wᵀ is what attention calls q·kᵀ: rows of x are queries, rows of weights are keys,
// and 64 columns at a time are their channels. The next columns of both are copied while these are
// multiplied. A block of SwiGLU multiplies the same rows of x by two tiles of weights.
//
// Blocks that start one after another have different rows of x and the same weights, which are thus
// read from memory once, and from L2 by the others. Not measured yet.
#pragma once

#include <cstddef>

#include "11_flash_attention/kernels/warp_tiles.hpp"

namespace t2t {

constexpr int tile_k = 64, tile_outs = 64;  // columns of all tiles, rows of a tile of weights

/// Elements of one step's tiles: x [128, 64], then [64, 64] of each matrix of weights.
template <class Weights>
constexpr int of_step() {
  return (tile_queries + Weights::matrices * tile_outs) * tile_k;
}
template <class Weights>
constexpr std::size_t many_rows_shared() {
  return 2 * of_step<Weights>() * sizeof(bf16);
}

/// Begins to copy columns `column` to `column` + 63 of this block's rows of x and of the weights.
/// What lies outside of the matrices becomes 0: each thread copies the same 8 of these columns of
/// each row of x, all or none of which are there.
template <class Weights>
__device__ __forceinline__ void copy_step(bf16* tile, const bf16* x, const Weights& weights, int T,
                                          int in, int out, int column) {
  const int first_row = blockIdx.x * tile_queries, first_out = blockIdx.y * tile_outs;
  const bool inside = column + int(threadIdx.x) % (tile_k / 8) * 8 < in;
  copy_rows<tile_k, tile_queries, tile_threads>(tile, x + std::size_t(first_row) * in + column, in,
                                                inside ? T - first_row : 0, threadIdx.x);
#pragma unroll
  for (int m = 0; m < Weights::matrices; ++m)
    weights.fill(m, tile + (tile_queries + m * tile_outs) * tile_k, first_out, column, in, out);
  commit_copies();
}

// [kernel]
/// The grid is [tiles of rows, tiles of columns of the result]. Of Weights it uses
///   matrices                                    how many are multiplied by the same rows
///   fill(m, tile, first_out, column, in, out)   brings 64 columns of 64 rows of matrix m, swizzled
///   store(at, sums)                             as in epilogues.hpp
template <class Weights>
__global__ void __launch_bounds__(tile_threads, 2)
    multiply_many_rows(const bf16* x, Weights weights, int T, int in, int out) {
  T2T_DYNAMIC_SHARED(bf16, tiles);                   // [2] steps
  const int from = threadIdx.x / 32 * warp_queries;  // the warp's rows in the tile
  const int first_row = blockIdx.x * tile_queries + from, lane = threadIdx.x % 32;
  float sums[Weights::matrices][2][tile_outs / 8][4] = {};
  uint32_t a[1][2][4];

  copy_step(tiles, x, weights, T, in, out, 0);
  for (int column = 0, now = 0; column < in; column += tile_k, now = 1 - now) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tiles are here, and all warps are done with the last step's
    if (column + tile_k < in)
      copy_step(tiles + (1 - now) * of_step<Weights>(), x, weights, T, in, out, column + tile_k);
    if (first_row >= T) continue;  // a warp without rows only copies
    const bf16* tile = tiles + now * of_step<Weights>();
#pragma unroll
    for (int m = 0; m < Weights::matrices; ++m)
      multiply_keys<tile_k, tile_outs, 1>(sums[m], a, tile + from * tile_k,
                                          tile + (tile_queries + m * tile_outs) * tile_k);
  }

  // fragments.hpp says which rows and columns of the tile a lane's sums are.
#pragma unroll
  for (int r = 0; r < 2; ++r)
    for (int n = 0; n < tile_outs / 8; ++n)
      for (int i = 0; i < 4; ++i) {
        const int t = first_row + 16 * r + 8 * (i / 2) + lane / 4;
        const int o = blockIdx.y * tile_outs + 8 * n + lane % 4 * 2 + i % 2;
        float of_element[Weights::matrices];
        for (int m = 0; m < Weights::matrices; ++m) of_element[m] = sums[m][r][n][i];
        if (t < T && o < out) weights.store(std::size_t(t) * out + o, of_element);
      }
}
// [/kernel]

template <class Weights>
void launch_many_rows(const bf16* x, const Weights& weights, int T, int in, int out) {
  const dim3 grid(unsigned(T + tile_queries - 1) / tile_queries,
                  unsigned(out + tile_outs - 1) / tile_outs);
  T2T_LAUNCH(multiply_many_rows<Weights>, grid, dim3(tile_threads), many_rows_shared<Weights>(), x,
             weights, T, in, out);
}

}  // namespace t2t
