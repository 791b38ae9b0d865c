// A product of many rows, on the tensor cores, in tiles of 128 rows of x and 64 rows of weights.
//
// Changed from product_kernel.cu: rung 4's tiles and fragments take the place of float32 sums in
// registers. x·wᵀ is what attention calls q·kᵀ: rows of x are queries, rows of weights are keys,
// and 64 columns at a time are their channels. The next columns of both are copied while these are
// multiplied. A block of SwiGLU multiplies the same rows of x by two tiles of weights.
//
// Blocks that start one after another have different rows of x and the same weights, which are thus
// read from memory once, and from L2 by the others. Not measured yet.
#include <cstddef>

#include "11_flash_attention/kernels/model/epilogues.hpp"
#include "11_flash_attention/kernels/model/products.hpp"
#include "11_flash_attention/kernels/warp_tiles.hpp"

namespace t2t {

namespace {

constexpr int tile_k = 64, tile_outs = 64;  // columns of all tiles, rows of a tile of weights

/// Elements of one step's tiles: x [128, 64], then [64, 64] of each matrix of weights.
template <class Epilogue>
constexpr int of_step() {
  return (tile_queries + Epilogue::matrices * tile_outs) * tile_k;
}
template <class Epilogue>
constexpr std::size_t shared_bytes() {
  return 2 * of_step<Epilogue>() * sizeof(bf16);
}

/// Begins to copy columns `column` to `column` + 63 of this block's rows of x and of the weights.
/// What lies outside of the matrices becomes 0: each thread copies the same 8 of these columns of
/// each row, all or none of which are there.
template <class Epilogue>
__device__ __forceinline__ void copy_step(bf16* tile, const bf16* x, const Epilogue& epilogue,
                                          int T, int in, int out, int column) {
  const int first_row = blockIdx.x * tile_queries, first_out = blockIdx.y * tile_outs;
  const bool inside = column + int(threadIdx.x) % (tile_k / 8) * 8 < in;
  copy_rows<tile_k, tile_queries, tile_threads>(tile, x + std::size_t(first_row) * in + column, in,
                                                inside ? T - first_row : 0, threadIdx.x);
#pragma unroll
  for (int m = 0; m < Epilogue::matrices; ++m)
    copy_rows<tile_k, tile_outs, tile_threads>(
        tile + (tile_queries + m * tile_outs) * tile_k,
        epilogue.weights(m) + std::size_t(first_out) * in + column, in,
        inside ? out - first_out : 0, threadIdx.x);
  commit_copies();
}

// [kernel]
/// The grid is [tiles of rows, tiles of columns of the result].
template <class Epilogue>
__global__ void __launch_bounds__(tile_threads, 2)
    multiply_many_rows(const bf16* x, Epilogue epilogue, int T, int in, int out) {
  T2T_DYNAMIC_SHARED(bf16, tiles);                   // [2] steps
  const int from = threadIdx.x / 32 * warp_queries;  // the warp's rows in the tile
  const int first_row = blockIdx.x * tile_queries + from, lane = threadIdx.x % 32;
  float sums[Epilogue::matrices][2][tile_outs / 8][4] = {};
  uint32_t a[1][2][4];

  copy_step(tiles, x, epilogue, T, in, out, 0);
  for (int column = 0, now = 0; column < in; column += tile_k, now = 1 - now) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tiles are here, and all warps are done with the last step's
    if (column + tile_k < in)
      copy_step(tiles + (1 - now) * of_step<Epilogue>(), x, epilogue, T, in, out, column + tile_k);
    if (first_row >= T) continue;  // a warp without rows only copies
    const bf16* tile = tiles + now * of_step<Epilogue>();
#pragma unroll
    for (int m = 0; m < Epilogue::matrices; ++m)
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
        float of_element[Epilogue::matrices];
        for (int m = 0; m < Epilogue::matrices; ++m) of_element[m] = sums[m][r][n][i];
        if (t < T && o < out) epilogue.store(std::size_t(t) * out + o, of_element);
      }
}
// [/kernel]

template <class Epilogue>
void launch_many(const bf16* x, const Epilogue& epilogue, int T, int in, int out) {
  const dim3 grid(unsigned(T + tile_queries - 1) / tile_queries,
                  unsigned(out + tile_outs - 1) / tile_outs);
  T2T_LAUNCH(multiply_many_rows<Epilogue>, grid, dim3(tile_threads), shared_bytes<Epilogue>(), x,
             epilogue, T, in, out);
}

}  // namespace

void multiply_many(const bf16* x, const StoreSums& epilogue, int T, int in, int out) {
  launch_many(x, epilogue, T, in, out);
}
void multiply_many(const bf16* x, const SwigluSums& epilogue, int T, int in, int out) {
  launch_many(x, epilogue, T, in, out);
}
void multiply_many(const bf16* x, const AddSums& epilogue, int T, int in, int out) {
  launch_many(x, epilogue, T, in, out);
}

}  // namespace t2t
