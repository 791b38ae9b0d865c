// Tiles in shared memory that are copied while the tensor cores compute, laid out without bank
// conflicts. Rungs 4 and 5 share this file.
//
// A row of D elements is D / 8 chunks of 16 bytes. Rows of 128 or 256 bytes all begin at bank 0,
// and ldmatrix, which reads the same chunk of 8 rows at once, would have to read one row after the
// other. Chunk c of row r is therefore stored at place c ^ (r % 8): the 8 chunks lie in 8 different
// sets of banks, and no memory is spent on gaps. Each read must follow the same rule.
#pragma once

#include "cuda/async_copy.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

/// The index of the first element of chunk `chunk` of row `row`, in a tile of rows of D elements.
template <int D>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * D + (chunk ^ row % 8) * 8;
}

/// Begins to copy `rows` rows into a tile. The first `inside` rows exist; the others are filled
/// with zeros, and their source is not read. `threads` threads call it together, each with its
/// number.
template <int D, int rows, int threads>
__device__ __forceinline__ void copy_rows(bf16* tile, const bf16* from, long stride, int inside,
                                          unsigned thread) {
  constexpr int step = threads / (D / 8);  // rows that all threads together copy at once
  const int first = thread / (D / 8), chunk = thread % (D / 8);
  from += first * stride + chunk * 8;
  inside -= first;
#pragma unroll 2  // more would keep many addresses in registers
  for (int row = 0; row < rows; row += step, from += step * stride)
    copy_async_16(tile + swizzled<D>(first + row, chunk), from, row < inside);
}

/// The address of chunk 2·c + odd of row `row` + lane_row. As (2·c + odd) ^ r is 2·c ^ (odd ^ r),
/// the second part is computed once for each lane, and the first is a constant.
template <int D>
__device__ __forceinline__ const bf16* lane_chunk(const bf16* tile, int row, int lane_row, int odd,
                                                  int c) {
  return tile + row * D + lane_row * D + ((8 * odd ^ 8 * (lane_row % 8)) ^ 16 * c);
}

/// Loads matrix a [16, 16]: 16 rows from `row` on, channels 16·c to 16·c + 15. Here and below the
/// first row is a multiple of 8.
template <int D>
__device__ __forceinline__ void load_queries(uint32_t (&a)[4], const bf16* tile, int row, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(a, lane_chunk<D>(tile, row, lane % 16, lane / 16, c));
}

/// Loads two matrices b of q·kᵀ, for channels 16·c to 16·c + 15: b[0] and b[1] are for the 8 keys
/// from `key` on, b[2] and b[3] for the next 8.
template <int D>
__device__ __forceinline__ void load_keys(uint32_t (&b)[4], const bf16* tile, int key, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(b, lane_chunk<D>(tile, key, lane / 16 * 8 + lane % 8, lane / 8 % 2, c));
}

/// Loads two matrices b of weights·v, for keys key to key + 15: b[0] and b[1] are for the 8
/// channels from 16·c on, b[2] and b[3] for the next 8. The sum runs over keys here, so the tile is
/// read transposed.
template <int D>
__device__ __forceinline__ void load_values(uint32_t (&b)[4], const bf16* tile, int key, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4_transposed(b, lane_chunk<D>(tile, key, lane % 16, lane / 16, c));
}

}  // namespace t2t
