// Prompts over pages: chapter 11's rung 4 for sequences whose keys lie in pages.
//
// Changed from rung 4: the host lists the tiles of queries, so that sequences of any lengths share
// a launch; and each row of a tile of keys is looked up in the sequence's table, which costs a
// division and a load for each 16 bytes that a thread copies. At D = 128 a step has 32 keys on
// every GPU, so that two blocks fit on most. Not measured yet.
#include "11_flash_attention/kernels/warp_tiles.hpp"
#include "15_serving/kernels/prompts.hpp"
#include "15_serving/kernels/sequence_pages.hpp"

namespace t2t {

namespace {

static_assert(tile_queries == prompt_tile_rows);

/// Keys of a step.
template <int D>
constexpr int tile_keys = D == 64 ? 64 : 32;

template <int D>
constexpr std::size_t shared_bytes() {
  return (tile_queries + 4 * tile_keys<D>)*D * sizeof(bf16);
}

// [kernel]
/// The grid is [tiles of all prompts, H].
template <int D>
__global__ void __launch_bounds__(tile_threads, 2)
    prompt_pages(PagedCall call, PromptsOnDevice prompts, float scale) {
  constexpr int Keys = tile_keys<D>;
  T2T_DYNAMIC_SHARED(bf16, q_tile);  // [128, D], and behind it [2][2][Keys, D]
  const auto k_tile = [&](int place) { return q_tile + (tile_queries + 2 * place * Keys) * D; };
  const auto v_tile = [&](int place) { return k_tile(place) + Keys * D; };
  const PromptTile tile = prompts.tiles[blockIdx.x];
  const int h = blockIdx.y, g = h / (call.H / call.G), lane = threadIdx.x % 32;
  const long of_group = long(g) * prompts.pages * prompts.page_size * D, stride = long(call.H) * D;
  const SequencePages sequence{prompts.tables + tile.table_at, call.keys + of_group,
                               call.values + of_group, prompts.page_size};
  const int seen_by_block = tile.position + tile.rows;
  const auto copy_step = [&](int place, int first) {  // keys and values from `first` on
    copy_keys<D, Keys, tile_threads>(k_tile(place), v_tile(place), sequence, first, seen_by_block,
                                     threadIdx.x);
    commit_copies();
  };

  const long at = tile.row * stride + h * D;  // of the tile's first row
  copy_rows<D, tile_queries, tile_threads>(q_tile, call.q + at, stride, tile.rows, threadIdx.x);
  commit_copies();
  copy_step(0, 0);
  constexpr int kept = D == 64 ? D / 16 : 1;
  const int from = threadIdx.x / 32 * warp_queries;  // the warp's rows in the tile
  uint32_t q[kept][2][4];
  if constexpr (kept > 1) {
    wait_for_copies<1>();  // the queries; the first keys may still be under way
    __syncthreads();
    for (int c = 0; c < kept; ++c)
      for (int r = 0; r < 2; ++r) load_queries<D>(q[c][r], q_tile, from + 16 * r, c);
  }

  // The row at position p sees keys 0 to p.
  OnlineRows rows[2];
  float mean[2][D / 8][4] = {};
  const int position = tile.position + from;  // of the warp's first row
  const int seen_by_warp = from < tile.rows ? min(position + warp_queries, seen_by_block) : 0;
  for (int first = 0, now = 0; first < seen_by_block; first += Keys, now = 1 - now) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tiles are here, and all warps are done with the last step's
    if (first + Keys < seen_by_block) copy_step(1 - now, first + Keys);
    if (first >= seen_by_warp) continue;
    float scores[2][Keys / 8][4] = {};
    multiply_keys<D, Keys>(scores, q, q_tile + from * D, k_tile(now));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int seen = position + 16 * r + lane / 4 + 1, of_halves[2] = {seen, seen + 8};
      if (first + Keys > position + 1) mask_scores(scores[r], first, of_halves);
      online_softmax(scores[r], mean[r], rows[r], scale);
    }
    multiply_values<D, Keys>(mean, scores, v_tile(now));
  }
  if (from >= tile.rows) return;
  __syncwarp();  // all lanes are done with the queries, over which the results are written
  for (int r = 0; r < 2; ++r)
    write_mean<D, D, tile_queries>(q_tile, from + 16 * r, mean[r], rows[r]);
  __syncwarp();
  store_rows<D, D, tile_queries, warp_queries>(q_tile, from, call.out + at + from * stride, stride,
                                               tile.rows - from);
}
// [/kernel]

template <int D>
void launch(const PagedCall& call, const PromptsOnDevice& prompts) {
  T2T_LAUNCH(prompt_pages<D>, dim3(prompts.count, call.H), dim3(tile_threads), shared_bytes<D>(),
             call, prompts, scale_log2(D));
}

}  // namespace

void attend_prompts(const PagedCall& call, const PromptsOnDevice& prompts) {
  expect_paged_call(call);
  call.D == 64 ? launch<64>(call, prompts) : launch<128>(call, prompts);
}

}  // namespace t2t
