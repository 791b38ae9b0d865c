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

/// `stages` tiles of keys, and behind them as many of values. Each tile has a barrier that says
/// that it is full, and one that says that all warps have released it. The struct of barriers lies
/// in shared memory.
template <int stages>
struct RingBarriers {
  Mbarrier k_full[stages], k_empty[stages], v_full[stages], v_empty[stages];

  __device__ __forceinline__ void init(int warps) {
    for (int s = 0; s < stages; ++s) {
      mbarrier_init(k_full[s], 1), mbarrier_init(k_empty[s], warps);
      mbarrier_init(v_full[s], 1), mbarrier_init(v_empty[s], warps);
    }
  }
};

template <int D>
struct KeyRing {
  static constexpr int keys = RoleSizes<D>::keys, stages = RoleSizes<D>::stages;
  static constexpr int elements = 2 * stages * keys * D;  // of all tiles
  bf16* tiles;
  RingBarriers<stages>& barriers;

  __device__ __forceinline__ bf16* k_tile(int stage) const { return tiles + stage * keys * D; }
  __device__ __forceinline__ bf16* v_tile(int stage) const { return k_tile(stages + stage); }

  /// By the producer: copies all keys and values of a tile of queries. They are steps `count`,
  /// count + 1, … of the ring.
  __device__ __forceinline__ void copy(const CallMaps& maps, const QueryTile& tile,
                                       int count) const {
    constexpr int bytes = keys * D * int(sizeof(bf16));
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
