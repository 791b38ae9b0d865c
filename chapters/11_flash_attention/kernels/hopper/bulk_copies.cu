// Rung 6: a tile is one instruction. A block is rung 4's: 4 warps of 32 queries, which multiply by
// mma.sync.
//
// Changed from rung 4: one thread asks TMA for a whole tile, so that no thread computes addresses
// of copies, and the hardware fills rows past the last key with zeros. A barrier in shared memory
// counts the bytes that have landed. A step waits for its own stage of the ring alone, and the
// thread that copies waits until all warps have released the stage that it fills next: there is no
// __syncthreads in the loop, and no warp waits for another one unless it must.
// Never run on a GPU.
#include "11_flash_attention/kernels/hopper/box_tiles.hpp"
#include "11_flash_attention/kernels/kernels.hpp"
#include "11_flash_attention/kernels/warp_tiles.hpp"

namespace t2t {

namespace {

constexpr int stages = 3;

template <int D, int Keys>
constexpr int shared_bytes() {
  return (tile_queries + 2 * stages * Keys) * D * int(sizeof(bf16));
}

// [kernel]
template <int D, int Keys>
__global__ void __launch_bounds__(tile_threads, 2)
    bulk_copies(const __grid_constant__ CallMaps maps, AttentionCall<bf16> call, float scale,
                int tiles) {
#if T2T_TILES
  T2T_DYNAMIC_TILES(bf16, q_tile);  // [128, D], and behind it [stages][2][Keys, D]
  __shared__ Mbarrier q_full, full[stages], empty[stages];
  const auto k_tile = [&](int stage) { return q_tile + (tile_queries + 2 * stage * Keys) * D; };
  const auto v_tile = [&](int stage) { return k_tile(stage) + Keys * D; };
  __shared__ QueryTile tile;  // in shared memory, since all registers are taken
  const int lane = threadIdx.x % 32, from = threadIdx.x / 32 * warp_queries;
  const auto copy_step = [&](int step) {  // by one thread
    const RingStep<stages> at(step);
    mbarrier_wait(empty[at.stage], at.parity ^ 1);
    mbarrier_arrive_expect(full[at.stage], 2 * Keys * D * int(sizeof(bf16)));
    load_box(k_tile(at.stage), maps.k, {step * Keys, tile.g, tile.b}, full[at.stage]);
    load_box(v_tile(at.stage), maps.v, {step * Keys, tile.g, tile.b}, full[at.stage]);
  };

  if (threadIdx.x == 0) {
    tile = query_tile<tile_queries, Keys>(call, tiles, int(blockIdx.x));
    mbarrier_init(q_full, 1);
    for (int s = 0; s < stages; ++s) mbarrier_init(full[s], 1), mbarrier_init(empty[s], tile_warps);
    mbarrier_init_fence();
    mbarrier_arrive_expect(q_full, tile_queries * D * int(sizeof(bf16)));
    load_box(q_tile, maps.q, {tile.first, tile.h, tile.b}, q_full);
    for (int step = 0; step < min(stages - 1, tile.steps); ++step) copy_step(step);
  }
  __syncthreads();  // the barriers are initialized
  const int first_query = tile.first + from;
  mbarrier_wait(q_full, 0);
  constexpr int kept = D == 64 ? D / 16 : 1;
  uint32_t q[kept][2][4];
  if constexpr (kept > 1)
    for (int c = 0; c < kept; ++c)
      for (int r = 0; r < 2; ++r) load_queries<64>(q[c][r], q_tile, from + 16 * r, c);

  OnlineRows rows[2];
  float mean[2][D / 8][4] = {};
  const int seen_by_first = keys_seen(call, first_query);
  const int seen_by_warp =
      first_query < call.T ? keys_seen(call, min(first_query + warp_queries, call.T) - 1) : 0;
#pragma unroll 1
  for (int step = 0; step < tile.steps; ++step) {
    const RingStep<stages> at(step);
    const int first = step * Keys;
    if (threadIdx.x == 0 && step + stages - 1 < tile.steps) copy_step(step + stages - 1);
    __syncwarp();
    mbarrier_wait(full[at.stage], at.parity);
    if (first < seen_by_warp) {
      float scores[2][Keys / 8][4] = {};
      multiply_keys<D, Keys, kept, 64>(scores, q, q_tile + from * 64, k_tile(at.stage));
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int t = first_query + 16 * r + lane / 4;
        const int seen[2] = {keys_seen(call, t), keys_seen(call, t + 8)};
        if (first + Keys > seen_by_first) mask_scores(scores[r], first, seen);
        online_softmax(scores[r], mean[r], rows[r], scale);
      }
      multiply_values<D, Keys, 64>(mean, scores, v_tile(at.stage));
    }
    __syncwarp();  // all lanes have read the stage
    if (lane == 0) mbarrier_arrive(empty[at.stage]);
  }
  if (first_query >= call.T) return;
  for (int r = 0; r < 2; ++r)
    write_mean<D, 64, tile_queries>(q_tile, from + 16 * r, mean[r], rows[r]);
  __syncwarp();
  store_rows<D, 64, tile_queries, warp_queries>(
      q_tile, from, row_of(call.out, call.out_strides, tile.b, first_query, tile.h),
      call.out_strides.token, call.T - first_query);
#endif
}
// [/kernel]

template <int D, int Keys>
void launch(const AttentionCall<bf16>& call) {
  const int tiles = query_tiles(call, tile_queries);
  T2T_LAUNCH((bulk_copies<D, Keys>), dim3(tiles * call.B * call.H), dim3(tile_threads),
             (shared_bytes<D, Keys>()), call_maps(call, tile_queries, Keys), call, scale_log2(D),
             tiles);
}

/// Whether two of its blocks fit on a multiprocessor of this GPU.
template <int D, int Keys>
bool two_blocks_fit() {
  return blocks_of_multiprocessor({"bulk_copies", __FILE__, __LINE__}, bulk_copies<D, Keys>,
                                  tile_threads, shared_bytes<D, Keys>()) >= 2;
}

}  // namespace

void attend_bulk_copies(const AttentionCall<bf16>& call) {
  expect_tiles(call);
  expect_bulk_copies("bulk_copies");
  if (call.D == 64)
    launch<64, 64>(call);
  else if (two_blocks_fit<128, 48>())
    launch<128, 48>(call);
  else
    launch<128, 16>(call);
}

}  // namespace t2t
