// A matrix product in float32, with tiles in shared memory, so that a block needs no library.
//
//   y[t, o] = Σ over i of x[t, i] · w[o, i]
//
// A block of 256 threads computes 32·32 elements of y, four in each thread. It loads 32 columns of
// 32 rows of x and of w at a time, and each number that it loaded serves 32 products. Rows of a
// tile are 33 numbers apart: the 32 lanes of a warp then read 32 different banks of shared memory.
// Expected: a tenth of cuBLAS's speed, since each product reads shared memory more than once.
#include <cstddef>
#include <stdexcept>
#include <string>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int tile = 32;    // rows of x, rows of w, and columns of both
constexpr int strips = 8;   // threads along the rows of x
constexpr int results = 4;  // of a thread: rows y, y + 8, y + 16, y + 24 of the tile

/// Thread (x, y) loads column x of rows y, y + 8 … of a tile. Elements outside the matrix are 0.
__device__ __forceinline__ void load_tile(const float* matrix, int rows, int columns, int row,
                                          int column, float (&to)[tile][tile + 1]) {
  const int c = column + threadIdx.x;
  for (int r = threadIdx.y; r < tile; r += strips) {
    const bool inside = row + r < rows && c < columns;
    to[r][threadIdx.x] = inside ? matrix[std::size_t(row + r) * columns + c] : 0;
  }
}

/// The grid is [tiles of out, tiles of T].
__global__ void product_kernel(const float* x, const float* w, int T, int in, int out, float* y) {
  __shared__ float x_tile[tile][tile + 1], w_tile[tile][tile + 1];
  const int first_t = blockIdx.y * tile, first_o = blockIdx.x * tile;
  const int o = first_o + threadIdx.x;
  float sums[results] = {};

  for (int first = 0; first < in; first += tile) {
    load_tile(x, T, in, first_t, first, x_tile);
    load_tile(w, out, in, first_o, first, w_tile);
    __syncthreads();  // both tiles are there
    for (int i = 0; i < tile; ++i) {
      const float weight = w_tile[threadIdx.x][i];
#pragma unroll
      for (int j = 0; j < results; ++j) sums[j] += x_tile[threadIdx.y + strips * j][i] * weight;
    }
    __syncthreads();  // all threads are done with both tiles
  }
#pragma unroll
  for (int j = 0; j < results; ++j) {
    const int t = first_t + threadIdx.y + strips * j;
    if (t < T && o < out) y[std::size_t(t) * out + o] = sums[j];
  }
}

}  // namespace

void launch_product(const float* x, const float* w, int T, int in, int out, float* y) {
  expect_size("T", T);
  expect_size("in", in);
  expect_size("out", out);
  // A grid has at most 65535 blocks along y.
  if (T > 65535 * tile)
    throw std::invalid_argument("T: wanted at most " + std::to_string(65535 * tile) + ", got " +
                                std::to_string(T));
  expect_device("x", x);
  expect_device("w", w);
  expect_device("y", y);
  const dim3 tiles((unsigned(out) + tile - 1) / tile, (unsigned(T) + tile - 1) / tile);
  T2T_LAUNCH(product_kernel, tiles, dim3(tile, strips), 0, x, w, T, in, out, y);
}

}  // namespace t2t
