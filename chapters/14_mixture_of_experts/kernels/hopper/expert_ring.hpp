// The ring of stages between the roles of grouped_warpgroups.cu: the producer, a warpgroup, copies
// rows and weights, and the consumers, up to two warpgroups, multiply them.
//
// A stage holds 64 channels of 128 rows of x and of two tiles of 128 rows of weights. All lie as
// TMA lays them (tensor_map.hpp), since the tensor cores read them. The rows of weights follow one
// another in memory, and one thread lets TMA bring a tile of them. The rows of x are those of an
// expert's tokens, wherever these are: the threads gather them by cp.async. Such a copy counts as a
// write of its thread, which waits for it and calls fence_async before the warp arrives.
#pragma once

#include "11_flash_attention/kernels/async_tiles.hpp"
#include "11_flash_attention/kernels/hopper/warpgroup_tiles.hpp"

namespace t2t {

constexpr int ring_stages = 4, ring_rows = 128, ring_columns = 128, ring_channels = 64;
constexpr int gathered_rows =
    ring_rows * ring_channels / 8 / group_threads;  // by one thread of the producer, 16 bytes each

/// In shared memory.
struct ExpertStage {
  bf16 x[ring_rows * ring_channels];
  bf16 w[2][ring_columns * ring_channels];
};

/// How TMA finds the rows of both tiles of weights: as rows of in / 64 heads of 64 channels, for
/// each expert. Channels after the last multiple of 64 are not in it.
struct WeightMaps {
  TensorMap side[2];
};

/// Arrives once for the warp, when all of its lanes have done their part.
__device__ __forceinline__ void arrive_for_warp(Mbarrier& barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
}

/// In shared memory: each stage has a barrier that says that it is full, and one that says that
/// all consumers have released it.
struct ExpertBarriers {
  Mbarrier full[ring_stages], empty[ring_stages];

  /// By all threads of the block, before any of them uses a barrier. A stage is full when its
  /// weights are there and the producer's four warps have announced its rows.
  __device__ __forceinline__ void init(int consumers) {
    if (threadIdx.x == 0) {
      for (int s = 0; s < ring_stages; ++s)
        mbarrier_init(full[s], 1 + 4), mbarrier_init(empty[s], 4 * consumers);
      mbarrier_init_fence();
    }
    __syncthreads();
  }
};

/// By the threads of the producer: waits until at most `Pending` of their groups of copies are
/// pending, and announces the rows of a step whose group is none of these.
template <int Pending>
__device__ __forceinline__ void announce_rows(ExpertBarriers& barriers, int step) {
  wait_for_copies<Pending>();
  fence_async();
  arrive_for_warp(barriers.full[step % ring_stages]);
}

/// By all threads of the producer: copies all steps. Each announces the rows of a step when it has
/// issued the next one's copies, so that rows of two steps are under way.
template <class Product, class Tile>
__device__ __forceinline__ void fill_ring(ExpertStage* stages, ExpertBarriers& barriers,
                                          const WeightMaps& maps, const Product& product,
                                          const Tile& tile, int first_out) {
  const int first = threadIdx.x / 8, chunk = threadIdx.x % 8;
  const bf16* rows[gathered_rows];
  for (int i = 0; i < gathered_rows; ++i)
    rows[i] = product.row(tile.first + min(first + 16 * i, tile.rows - 1)) + 8 * chunk;
  const int steps = (product.in + ring_channels - 1) / ring_channels;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const RingStep<ring_stages> at(step);
    ExpertStage& stage = stages[at.stage];
    const int channel = step * ring_channels;
    const bool whole = channel + ring_channels <= product.in;
    const bool inside = channel + 8 * chunk < product.in;
    mbarrier_wait(barriers.empty[at.stage], at.parity ^ 1);
    if (threadIdx.x == 0) {
      mbarrier_arrive_expect(barriers.full[at.stage], whole ? int(sizeof stage.w) : 0);
      for (int side = 0; whole && side < 2; ++side)
        load_box(stage.w[side], maps.side[side],
                 {first_out + side * Product::apart, step, tile.expert}, barriers.full[at.stage]);
    }
#pragma unroll
    for (int i = 0; i < gathered_rows; ++i) {
      const int r = first + 16 * i;
      copy_async_16(stage.x + swizzled<ring_channels>(r, chunk), rows[i] + channel,
                    inside && r < tile.rows);
    }
    for (int side = 0; !whole && side < 2; ++side) {  // the channels that are not in the map
      const int out = first_out + side * Product::apart;
      copy_rows<ring_channels, ring_columns, group_threads>(
          stage.w[side], product.weights(tile.expert, side, out) + channel, product.in,
          inside ? product.out - out : 0, threadIdx.x);
    }
    commit_copies();
    if (step > 0) announce_rows<1>(barriers, step - 1);
  }
  announce_rows<0>(barriers, steps - 1);
}

/// A thread's sums of 64 rows and of both tiles of weights.
using RingSums = float[2][ring_columns / 8][4];

/// Issues sums += x·wᵀ for a stage, for the 64 rows from `row` on and both tiles of weights.
__device__ __forceinline__ void issue_stage(RingSums& sums, const ExpertStage& stage, int row) {
  const std::uint64_t x = rows_of_channels(stage.x + row * ring_channels);
  const std::uint64_t w[2] = {rows_of_channels(stage.w[0]), rows_of_channels(stage.w[1])};
  begin_products(sums[0], sums[1]);
#pragma unroll
  for (int c = 0; c < ring_channels / 16; ++c)  // 16 channels are 2 further on
    for (int side = 0; side < 2; ++side) multiply<true>(sums[side], x + 2 * c, w[side] + 2 * c);
  commit_products();
}

}  // namespace t2t
