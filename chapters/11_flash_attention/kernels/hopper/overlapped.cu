// Rung 9: softmax under products, and turns between warpgroups (overlapped_tile.hpp).
//
// Changed from rung 8: in each step a warpgroup issues the next scores before it waits for the
// means, and the warpgroups take turns ("ping-pong").
// Never run on a GPU.
#include "11_flash_attention/kernels/hopper/overlapped_tile.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

// [kernel]
template <int D>
__global__ void __launch_bounds__(RoleSizes<D>::threads, 1)
    overlapped(const __grid_constant__ CallMaps maps, AttentionCall<bf16> call, float scale,
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
  const int group = current_warpgroup() - 1, row = group * group_queries;
  const Turns<Sizes::groups> turns{group};
  turns.begin();
  OnlineRows rows;
  float mean[D / 8][4] = {};
  mbarrier_wait(barriers.q_full, 0);
  attend_overlapped_tile<D>(mean, rows, q_tile + row * 64, ring, 0, tile.steps,
                            GroupMask(call, tile.first + row), turns, scale, [] {});
  store_group<D, Sizes::queries>(call, tile, q_tile, row, mean, rows);
#endif
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call) {
  using Sizes = RoleSizes<D>;
  const int tiles = query_tiles(call, Sizes::queries);
  T2T_LAUNCH((overlapped<D>), dim3(tiles * call.B * call.H), dim3(Sizes::threads),
             (Sizes::queries * D + KeyRing<D>::elements) * sizeof(bf16),
             call_maps(call, Sizes::queries, Sizes::keys), call, scale_log2(D), tiles);
}

}  // namespace

void attend_overlapped(const AttentionCall<bf16>& call) {
  expect_tiles(call);
  expect_warpgroups("overlapped");
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
