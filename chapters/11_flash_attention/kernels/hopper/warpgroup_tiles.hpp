// What a warpgroup of rungs 7 to 10 does with its 64 queries. Its sums lie in the lanes' registers
// as those of mma.sync do (fragments.hpp): warp w of the group has rows 16·w … 16·w + 15.
#pragma once

#include "11_flash_attention/kernels/fragments.hpp"
#include "11_flash_attention/kernels/hopper/box_tiles.hpp"
#include "11_flash_attention/kernels/warp_tiles.hpp"
#include "cuda/warpgroup.hpp"

namespace t2t {

constexpr int group_queries = 64, group_threads = 128;

/// This thread's warpgroup, in a form that the compiler knows to be the same in all lanes.
__device__ __forceinline__ int current_warpgroup() {
  return __shfl_sync(~0u, int(threadIdx.x / group_threads), 0);
}
/// The first of the 16 rows that this thread's warp has of its warpgroup's 64.
__device__ __forceinline__ int first_row_of_warp() {
  return int(threadIdx.x % group_threads / 32 * 16);
}

/// Waits for the other warps of this thread's warpgroup. Uses barriers 8 and above.
__device__ __forceinline__ void meet_group() {
  barrier_sync(8 + current_warpgroup(), group_threads);
}

/// Issues scores [64, Keys] = q·kᵀ. q is the warpgroup's first row in a tile of tile_rows rows, and
/// k is a tile of keys. Nothing may read the scores, or write the tiles, before wait_for_products.
template <int D, int Keys, int tile_rows>
__device__ __forceinline__ void issue_scores(float (&scores)[Keys / 8][4], const bf16* q,
                                             const bf16* k) {
  const std::uint64_t rows = rows_of_channels(q), keys = rows_of_channels(k);
  begin_products(scores);
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {  // 16 channels are 2 further on, the next 64 a tile
    const std::uint64_t a = rows + (c / 4 * tile_rows * 8 + c % 4 * 2);
    const std::uint64_t b = keys + (c / 4 * Keys * 8 + c % 4 * 2);
    if (c == 0) {
      multiply<false>(scores, a, b);
    } else {
      multiply<true>(scores, a, b);
    }
  }
  commit_products();
}

/// Issues mean [64, D] += weights·v. v is a tile of values.
template <int D, int Keys>
__device__ __forceinline__ void issue_mean(float (&mean)[D / 8][4],
                                           std::uint32_t (&weights)[Keys / 16][4], const bf16* v) {
  const std::uint64_t values = channels_of_rows(v, Keys);
  begin_products(mean, weights);
#pragma unroll
  for (int s = 0; s < Keys / 16; ++s) multiply(mean, weights[s], values + 128 * s);
  commit_products();
}

/// Packs weights to bf16, as matrices a of the product with the values.
template <int Blocks>
__device__ __forceinline__ void pack_all(std::uint32_t (&packed)[Blocks / 2][4],
                                         const float (&weights)[Blocks][4]) {
#pragma unroll
  for (int s = 0; s < Blocks / 2; ++s) pack_weights(packed[s], weights[2 * s], weights[2 * s + 1]);
}

/// The keys that a lane's two rows see, of a warpgroup's 64 queries from `first` on.
struct GroupMask {
  int seen[2], seen_by_first;
  __device__ __forceinline__ GroupMask(const AttentionCall<bf16>& call, int first)
      : seen_by_first(keys_seen(call, first)) {
    const int row = first + first_row_of_warp() + int(threadIdx.x % 32 / 4);
    seen[0] = keys_seen(call, row), seen[1] = keys_seen(call, row + 8);
  }
  /// Masks the scores of tile `step`, if any of the 64 queries does not see all of its keys.
  template <int Blocks>
  __device__ __forceinline__ void apply(float (&scores)[Blocks][4], int step) const {
    if ((step + 1) * 8 * Blocks > seen_by_first) mask_scores(scores, step * 8 * Blocks, seen);
  }
};

/// Stores o / l of the warpgroup's 64 queries, the first of which is query `first`. They are
/// written over the queries in their tile of tile_rows rows, from row `row` on.
template <int D, int tile_rows>
__device__ __forceinline__ void store_group(const AttentionCall<bf16>& call, const QueryTile& tile,
                                            bf16* q_tile, int row, const float (&mean)[D / 8][4],
                                            const OnlineRows& rows) {
  const int from = row + first_row_of_warp(), t = tile.first + from;
  meet_group();  // all four warps are done with the queries
  write_mean<D, 64, tile_rows>(q_tile, from, mean, rows);
  __syncwarp();
  if (t < call.T)
    store_rows<D, 64, tile_rows, 16>(q_tile, from,
                                     row_of(call.out, call.out_strides, tile.b, t, tile.h),
                                     call.out_strides.token, call.T - t);
}

}  // namespace t2t
