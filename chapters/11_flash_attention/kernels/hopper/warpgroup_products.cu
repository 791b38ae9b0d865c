// Rung 7: products of a warpgroup. A block has 2 warpgroups at D = 128 and 3 at D = 64, of 64
// queries each.
//
// Changed from rung 6: the four warps of a warpgroup multiply 64 queries by 128 keys with one
// instruction (wgmma), which reads both straight from shared memory. No warp loads fragments of
// queries, keys or values any more, and there is room for one block on a multiprocessor. To keep
// the new idea alone, the warps meet at __syncthreads in each step, as in rung 4. Never run on a
// GPU.
#include "11_flash_attention/kernels/hopper/warpgroup_tiles.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int Keys = 128;

template <int D>
struct Sizes {
  static constexpr int groups = D == 64 ? 3 : 2, stages = D == 64 ? 3 : 2;
  static constexpr int queries = group_queries * groups, threads = group_threads * groups;
  static constexpr int shared_bytes = (queries + 2 * stages * Keys) * D * int(sizeof(bf16));
};

// [kernel]
template <int D>
__global__ void __launch_bounds__(Sizes<D>::threads, 1)
    warpgroup_products(const __grid_constant__ CallMaps maps, AttentionCall<bf16> call, float scale,
                       int tiles) {
#if T2T_WARPGROUPS
  constexpr int queries = Sizes<D>::queries, stages = Sizes<D>::stages;
  T2T_DYNAMIC_TILES(bf16, q_tile);  // [queries, D], and behind it [stages][2][Keys, D]
  __shared__ Mbarrier q_full, full[stages];
  const auto k_tile = [&](int stage) { return q_tile + (queries + 2 * stage * Keys) * D; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + Keys * D; };
  const QueryTile tile = query_tile<queries, Keys>(call, tiles, int(blockIdx.x));
  const auto copy_step = [&](int step) {
    const RingStep<stages> at(step);
    mbarrier_arrive_expect(full[at.stage], 2 * Keys * D * int(sizeof(bf16)));
    load_box(k_tile(at.stage), maps.k, {step * Keys, tile.g, tile.b}, full[at.stage]);
    load_box(v_tile(at.stage), maps.v, {step * Keys, tile.g, tile.b}, full[at.stage]);
  };

  if (threadIdx.x == 0) {
    mbarrier_init(q_full, 1);
    for (int s = 0; s < stages; ++s) mbarrier_init(full[s], 1);
    mbarrier_init_fence();
    mbarrier_arrive_expect(q_full, queries * D * int(sizeof(bf16)));
    load_box(q_tile, maps.q, {tile.first, tile.h, tile.b}, q_full);
    for (int step = 0; step < min(stages - 1, tile.steps); ++step) copy_step(step);
  }
  __syncthreads();                                      // the barriers are initialized
  const int row = current_warpgroup() * group_queries;  // the warpgroup's first in the tile
  const GroupMask mask(call, tile.first + row);
  OnlineRows rows;
  float mean[D / 8][4] = {};
  mbarrier_wait(q_full, 0);
#pragma unroll 1
  for (int step = 0; step < tile.steps; ++step) {
    const RingStep<stages> at(step);
    mbarrier_wait(full[at.stage], at.parity);
    __syncthreads();  // all are done with the stage before, which is filled next
    if (threadIdx.x == 0 && step + stages - 1 < tile.steps) copy_step(step + stages - 1);
    float scores[Keys / 8][4];
    issue_scores<D, Keys, queries>(scores, q_tile + row * 64, k_tile(at.stage));
    wait_for_products<0>(scores);
    mask.apply(scores, step);
    online_softmax(scores, mean, rows, scale);
    std::uint32_t weights[Keys / 16][4];
    pack_all(weights, scores);
    issue_mean<D, Keys>(mean, weights, v_tile(at.stage));
    wait_for_products<0>(mean);
  }
  store_group<D, queries>(call, tile, q_tile, row, mean, rows);
#endif
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call) {
  constexpr int queries = Sizes<D>::queries;
  const int tiles = query_tiles(call, queries);
  T2T_LAUNCH((warpgroup_products<D>), dim3(tiles * call.B * call.H), dim3(Sizes<D>::threads),
             Sizes<D>::shared_bytes, call_maps(call, queries, Keys), call, scale_log2(D), tiles);
}

}  // namespace

void attend_warpgroup_products(const AttentionCall<bf16>& call) {
  expect_tiles(call);
  expect_warpgroups("warpgroup_products");
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
