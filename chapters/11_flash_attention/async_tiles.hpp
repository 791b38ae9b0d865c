// Tiles that are copied while the tensor cores compute, laid so that no read waits for another:
// what rungs 4 and 5 share.
//
// A row of D numbers is D / 8 chunks of 16 bytes. Eight rows of 128 or 256 bytes begin at the same
// bank, so that ldmatrix, which reads one chunk of 8 rows at once, would read 8 times. Chunk c of
// row r lies at place c ^ (r % 8) instead: 8 rows, 8 different places, and no memory spent on gaps.
// What is stored by this rule must be read by it.
#pragma once

#include "cuda/async_copy.hpp"
#include "cuda/tensor_core.hpp"

namespace t2t {

/// Where chunk `chunk` of row `row` lies in a tile of rows of D numbers.
template <int D>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  return row * D + (chunk ^ row % 8) * 8;
}

/// Begins the copy of `rows` rows, of which the first `inside` are there: the others become zeros,
/// and are never read. So many threads do it together; this one is number `thread` of them.
template <int D, int rows, int threads>
__device__ __forceinline__ void copy_rows(bf16* tile, const bf16* from, long stride, int inside,
                                          unsigned thread) {
  constexpr int step = threads / (D / 8);  // rows that all threads copy at once
  const int first = thread / (D / 8), chunk = thread % (D / 8);
  from += first * stride + chunk * 8;
  inside -= first;
#pragma unroll
  for (int row = 0; row < rows; row += step, from += step * stride)
    copy_async_16(tile + swizzled<D>(first + row, chunk), from, row < inside);
}

/// Where a lane reads the chunks 2·c and 2·c + 1 of rows from `row` on: its row's place in the
/// tile, and in it the chunk. (2·c + odd) ^ r is 2·c ^ (odd ^ r): one sum a lane, the rest is
/// constant.
template <int D>
__device__ __forceinline__ const bf16* lane_chunk(const bf16* tile, int row, int lane_row, int odd,
                                                  int c) {
  return tile + row * D + lane_row * D + ((8 * odd ^ 8 * (lane_row % 8)) ^ 16 * c);
}

/// Block a [16, 16] of rows row … and channels 16·c …; row is a multiple of 8, here and below.
template <int D>
__device__ __forceinline__ void load_queries(uint32_t (&a)[4], const bf16* tile, int row, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(a, lane_chunk<D>(tile, row, lane % 16, lane / 16, c));
}

/// Blocks b of keys key … key + 15 and channels 16·c …: b[0], b[1] for the first 8 keys.
template <int D>
__device__ __forceinline__ void load_keys(uint32_t (&b)[4], const bf16* tile, int key, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4(b, lane_chunk<D>(tile, key, lane / 16 * 8 + lane % 8, lane / 8 % 2, c));
}

/// Blocks b of keys key … key + 15, which are summed over now, and channels 16·c …: b[0], b[1] for
/// the first 8 channels. A column of the tile becomes a row of the block: hence transposed.
template <int D>
__device__ __forceinline__ void load_values(uint32_t (&b)[4], const bf16* tile, int key, int c) {
  const int lane = threadIdx.x % 32;
  ldmatrix_x4_transposed(b, lane_chunk<D>(tile, key, lane % 16, lane / 16, c));
}

}  // namespace t2t
