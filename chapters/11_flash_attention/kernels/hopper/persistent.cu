// Rung 10: persistent blocks. There are as many blocks as multiprocessors, and each takes tile
// after tile of queries.
//
// Changed from rung 9: while the consumers finish a tile, the producer already brings the next
// tile's queries and keys, and results leave by TMA while the next tile is computed. The tiles
// of all heads, those with the most keys first, are dealt out forwards and backwards in turn, so
// that under a causal mask all blocks end at about the same time.
// Never run on a GPU.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "11_flash_attention/kernels/hopper/overlapped_tile.hpp"
#include "11_flash_attention/kernels/kernels.hpp"
#include "cuda/device.hpp"

namespace t2t {

namespace {

#if T2T_WARPGROUPS
/// The number of the tile that this block takes in a round, or one past the last: blocks 0, 1, …, n
/// take tiles in this order in rounds 0, 2, …, and in the opposite one in rounds 1, 3, …
__device__ __forceinline__ int tile_of_round(int round) {
  const int blocks = int(gridDim.x), block = int(blockIdx.x);
  return round * blocks + (round % 2 == 0 ? block : blocks - 1 - block);
}
#endif

// [kernel]
template <int D>
__global__ void __launch_bounds__(RoleSizes<D>::threads, 1)
    persistent(const __grid_constant__ CallMaps maps, const __grid_constant__ TensorMap out_map,
               AttentionCall<bf16> call, float scale, int tiles) {
#if T2T_WARPGROUPS
  using Sizes = RoleSizes<D>;
  T2T_DYNAMIC_TILES(bf16, q_tile);  // [queries, D], results [groups][64, D], the ring
  bf16* const results = q_tile + Sizes::queries * D;
  __shared__ Mbarrier q_empty;
  __shared__ RingBarriers<D> barriers;
  const KeyRing<D> ring{results + Sizes::queries * D, barriers};
  const int count_of_tiles = tiles * call.B * call.H;
  if (threadIdx.x == 0) mbarrier_init(q_empty, 4 * Sizes::groups);
  barriers.init();
  int count = 0;  // steps of the ring so far, over all tiles

  if (current_warpgroup() == 0) {
    if (!becomes_producer<D>()) return;
#pragma unroll 1
    for (int round = 0; tile_of_round(round) < count_of_tiles; ++round) {
      const auto tile = query_tile<Sizes::queries, Sizes::keys>(call, tiles, tile_of_round(round));
      mbarrier_wait(q_empty, round % 2 ^ 1);
      ring.copy(maps, q_tile, tile, count);
      count += tile.steps;
    }
    return;
  }

  take_registers<Sizes::consumer_registers>();
  const int group = current_warpgroup() - 1, row = group * group_queries;
  const bool stores = threadIdx.x % group_threads == 0;  // one thread of each warpgroup
  bf16* const result = results + row * D;
  const Turns<Sizes::groups> turns{group};
  turns.begin();
#pragma unroll 1
  for (int round = 0; tile_of_round(round) < count_of_tiles; ++round) {
    const auto tile = query_tile<Sizes::queries, Sizes::keys>(call, tiles, tile_of_round(round));
    OnlineRows rows;
    float mean[D / 8][4] = {};
    mbarrier_wait(barriers.q_full, round % 2);
    attend_overlapped_tile<D>(mean, rows, q_tile + row * 64, ring, count, tile.steps,
                              GroupMask(call, tile.first + row), turns, scale,
                              [&] { release(q_empty); });
    count += tile.steps;
    if (stores) wait_for_stores_read<0>();
    meet_group();  // the last tile's results have left
    write_mean<D, 64, group_queries>(result, first_row_of_warp(), mean, rows);
    fence_async();
    meet_group();  // all four warps have written
    if (stores) {
      store_box(out_map, {tile.first + row, tile.h, tile.b}, result);
      commit_stores();
    }
  }
  if (stores) wait_for_stores_read<0>();
#endif
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call, int blocks) {
  using Sizes = RoleSizes<D>;
  const int tiles = query_tiles(call, Sizes::queries);
  T2T_LAUNCH((persistent<D>), dim3(std::min(blocks, tiles * call.B * call.H)), dim3(Sizes::threads),
             (2 * Sizes::queries * D + KeyRing<D>::elements) * sizeof(bf16),
             call_maps(call, Sizes::queries, Sizes::keys), out_map(call, group_queries), call,
             scale_log2(D), tiles);
}

}  // namespace

void attend_persistent(const AttentionCall<bf16>& call, int blocks) {
  expect_tiles(call);
  expect_warpgroups("persistent");
  if (blocks < 0)
    throw std::invalid_argument("blocks: wanted at least 0, got " + std::to_string(blocks));
  if (blocks == 0) blocks = multiprocessors();
  call.D == 64 ? launch<64>(call, blocks) : launch<128>(call, blocks);
}

}  // namespace t2t
