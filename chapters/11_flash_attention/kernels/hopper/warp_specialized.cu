// Rung 8: roles (warp specialization). One warpgroup copies, the producer. The others multiply, the
// consumers: 2 at D = 128 and 3 at D = 64, with 64 queries each.
//
// Changed from rung 7: the producer never computes, and gives most of its registers to the
// consumers (setmaxnreg). Keys and values have barriers of their own, so that a consumer releases
// the keys as soon as its scores are there, and the next keys come while it still uses the values.
// Nothing but the ring ties the warpgroups together, so that one multiplies while another one
// computes exponentials.
// Never run on a GPU.
#include "11_flash_attention/kernels/hopper/key_ring.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

// [kernel]
template <int D>
__global__ void __launch_bounds__(RoleSizes<D>::threads, 1)
    warp_specialized(const __grid_constant__ CallMaps maps, AttentionCall<bf16> call, float scale,
                     int tiles) {
#if T2T_WARPGROUPS
  using Sizes = RoleSizes<D>;
  T2T_DYNAMIC_TILES(bf16, q_tile);  // [queries, D], and behind it the ring
  __shared__ RingBarriers<D> barriers;
  const KeyRing<D> ring{q_tile + Sizes::queries * D, barriers};
  const auto tile = query_tile<Sizes::queries, Sizes::keys>(call, tiles, int(blockIdx.x));
  barriers.init();

  if (current_warpgroup() == 0) {
    if (becomes_producer<D>()) ring.copy(maps, q_tile, tile, 0);
    return;
  }

  take_registers<Sizes::consumer_registers>();
  const int row = (current_warpgroup() - 1) * group_queries;
  const GroupMask mask(call, tile.first + row);
  OnlineRows rows;
  float mean[D / 8][4] = {};
  mbarrier_wait(barriers.q_full, 0);
#pragma unroll 1
  for (int step = 0; step < tile.steps; ++step) {
    const int stage = step % Sizes::stages;
    float scores[Sizes::keys / 8][4];
    ring.wait_for_keys(step);
    issue_scores<D, Sizes::keys, Sizes::queries>(scores, q_tile + row * 64, ring.k_tile(stage));
    wait_for_products<0>(scores);
    release(barriers.k_empty[stage]);
    mask.apply(scores, step);
    online_softmax(scores, mean, rows, scale);
    std::uint32_t weights[Sizes::keys / 16][4];
    pack_all(weights, scores);
    ring.wait_for_values(step);
    issue_mean<D, Sizes::keys>(mean, weights, ring.v_tile(stage));
    wait_for_products<0>(mean);
    release(barriers.v_empty[stage]);
  }
  store_group<D, Sizes::queries>(call, tile, q_tile, row, mean, rows);
#endif
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call) {
  using Sizes = RoleSizes<D>;
  const int tiles = query_tiles(call, Sizes::queries);
  T2T_LAUNCH((warp_specialized<D>), dim3(tiles * call.B * call.H), dim3(Sizes::threads),
             (Sizes::queries * D + KeyRing<D>::elements) * sizeof(bf16),
             call_maps(call, Sizes::queries, Sizes::keys), call, scale_log2(D), tiles);
}

}  // namespace

void attend_warp_specialized(const AttentionCall<bf16>& call) {
  expect_tiles(call);
  expect_warpgroups("warp_specialized");
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
