// The ring of tiles between the roles of rungs 8 to 10: the producer, one thread, copies keys and
// values, and the consumers, 2 or 3 warpgroups, multiply them.
#pragma once

#include "11_flash_attention/kernels/hopper/warpgroup_tiles.hpp"

namespace t2t {

/// The sizes of tiles, the number of consumers (`groups`), and the registers of a thread after each
/// role has given or taken its own.
template <int D>
struct RoleSizes {
  static constexpr int keys = 128, stages = 2, groups = D == 64 ? 3 : 2;
  static constexpr int queries = group_queries * groups, threads = group_threads * (groups + 1);
  static constexpr int producer_registers = D == 64 ? 32 : 24,
                       consumer_registers = D == 64 ? 160 : 240;
};

/// In shared memory: each tile of the ring has a barrier that says that it is full, and one that
/// says that all consumers' warps have released it. The tile of queries has the first of them.
template <int D>
struct RingBarriers {
  static constexpr int stages = RoleSizes<D>::stages, warps = 4 * RoleSizes<D>::groups;
  Mbarrier q_full, k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];

  /// By all threads of the block, before any of them uses a barrier.
  __device__ __forceinline__ void init() {
    if (threadIdx.x == 0) {
      mbarrier_init(q_full, 1);
      for (int s = 0; s < stages; ++s) {
        mbarrier_init(k_full[s], 1), mbarrier_init(k_empty[s], warps);
        mbarrier_init(v_full[s], 1), mbarrier_init(v_empty[s], warps);
      }
      mbarrier_init_fence();
    }
    __syncthreads();
  }
};

/// By all threads of the producer's warpgroup: keeps few registers, and is true for the one thread
/// that copies.
template <int D>
__device__ __forceinline__ bool becomes_producer() {
  give_registers<RoleSizes<D>::producer_registers>();
  return threadIdx.x / 32 == 0 && elected();
}

/// `stages` tiles of keys, and behind them as many of values.
template <int D>
struct KeyRing {
  static constexpr int keys = RoleSizes<D>::keys, stages = RoleSizes<D>::stages;
  static constexpr int elements = 2 * stages * keys * D;  // of all tiles
  bf16* tiles;
  RingBarriers<D>& barriers;

  __device__ __forceinline__ bf16* k_tile(int stage) const { return tiles + stage * keys * D; }
  __device__ __forceinline__ bf16* v_tile(int stage) const { return k_tile(stages + stage); }

  /// By the producer: copies a tile of queries, and all of its keys and values, which are steps
  /// `count`, count + 1, … of the ring.
  __device__ __forceinline__ void copy(const CallMaps& maps, bf16* q_tile, const QueryTile& tile,
                                       int count) const {
    constexpr int bytes = keys * D * int(sizeof(bf16));
    mbarrier_arrive_expect(barriers.q_full, RoleSizes<D>::queries * D * int(sizeof(bf16)));
    load_box(q_tile, maps.q, {tile.first, tile.h, tile.b}, barriers.q_full);
#pragma unroll 1
    for (int step = 0; step < tile.steps; ++step) {
      const RingStep<stages> at(count + step);
      const BoxAt box{step * keys, tile.g, tile.b};
      mbarrier_wait(barriers.k_empty[at.stage], at.parity ^ 1);
      mbarrier_arrive_expect(barriers.k_full[at.stage], bytes);
      load_box(k_tile(at.stage), maps.k, box, barriers.k_full[at.stage]);
      mbarrier_wait(barriers.v_empty[at.stage], at.parity ^ 1);
      mbarrier_arrive_expect(barriers.v_full[at.stage], bytes);
      load_box(v_tile(at.stage), maps.v, box, barriers.v_full[at.stage]);
    }
  }

  __device__ __forceinline__ void wait_for_keys(int count) const {
    const RingStep<stages> at(count);
    mbarrier_wait(barriers.k_full[at.stage], at.parity);
  }
  __device__ __forceinline__ void wait_for_values(int count) const {
    const RingStep<stages> at(count);
    mbarrier_wait(barriers.v_full[at.stage], at.parity);
  }
};

/// Once for each warp.
__device__ __forceinline__ void release(Mbarrier& empty) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}

}  // namespace t2t
