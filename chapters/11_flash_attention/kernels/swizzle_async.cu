// Rung 4: asynchronous copies and no bank conflicts. A block is 4 warps of 32 queries. A step takes
// one tile of keys and one of values, and there is room for those of two steps.
//
// Changed from rung 3: ldmatrix reads four 8 x 8 matrices at once, from swizzled tiles
// (async_tiles.hpp). cp.async brings the next step's keys and values while this step is computed,
// so that a step has one wait and one barrier. A warp has 32 queries, so that each fragment of keys
// that it reads serves two products. At D = 64 the queries stay in registers; at D = 128 the means
// take 128 of the 255 registers, and the queries are read again in each step. Two blocks fit on a
// multiprocessor, so that one can multiply while the other computes exponentials: tiles have 64
// rows at D = 64, and at D = 128 as many as two blocks and their registers leave room for, 48, or
// 16 on GPUs with 100 KiB of shared memory. Under a causal mask, tiles past the diagonal are
// skipped, warps past their last key only wait for the others, and only tiles that need a mask get
// one. The blocks with the most keys start first, so that short ones fill the end.
// Measured: up to 362 TFLOP/s on an H100 at D = 128, and 332 at D = 64.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "11_flash_attention/kernels/kernels.hpp"
#include "11_flash_attention/kernels/warp_tiles.hpp"

namespace t2t {

namespace {

/// Which tile of queries of which head a block takes. Heads are taken in sections whose keys and
/// values together fit L2; within a section, the last tile of each head comes first.
struct BlockTile {
  int tile, h, b;
};
__device__ BlockTile tile_of(int block, int tiles, int B, int H, int section) {
  const int part = block / (section * tiles), rest = block % (section * tiles);
  const int heads = min(section, B * H - part * section);
  const int head = part * section + rest % heads;
  return {tiles - 1 - rest / heads, head % H, head / H};
}

template <int D, int Keys>
constexpr std::size_t shared_bytes() {
  return (tile_queries + 4 * Keys) * D * sizeof(bf16);
}

/// Whether the launch ever chooses these tiles on the GPU that the kernel is compiled for. On an
/// RTX 50 it never chooses 48 keys at D = 128, whose code would spill registers there.
template <int D, int Keys>
__device__ constexpr bool is_chosen() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ / 100 == 12
  return 2 * (shared_bytes<D, Keys>() + 1024) <= 100 * 1024;
#else
  return true;
#endif
}

// [kernel]
template <int D, int Keys>
__global__ void __launch_bounds__(tile_threads, 2)
    swizzle_async(AttentionCall<bf16> call, float scale, int tiles, int section) {
  if (!is_chosen<D, Keys>()) return;
  T2T_DYNAMIC_SHARED(bf16, q_tile);  // [128, D], and behind it [2][2][Keys, D]
  const auto k_tile = [&](int place) { return q_tile + (tile_queries + 2 * place * Keys) * D; };
  const auto v_tile = [&](int place) { return k_tile(place) + Keys * D; };
  const auto [tile, h, b] = tile_of(blockIdx.x, tiles, call.B, call.H, section);
  const int g = h / (call.H / call.G), lane = threadIdx.x % 32;
  const int first_of_block = tile * tile_queries;
  const int from = threadIdx.x / 32 * warp_queries;  // the warp's rows in the tile
  const int first_query = first_of_block + from;
  const auto copy_step = [&, b = b](int place, int first) {  // keys and values from `first` on
    copy_rows<D, Keys, tile_threads>(k_tile(place), row_of(call.k, call.k_strides, b, first, g),
                                     call.k_strides.token, call.S - first, threadIdx.x);
    copy_rows<D, Keys, tile_threads>(v_tile(place), row_of(call.v, call.v_strides, b, first, g),
                                     call.v_strides.token, call.S - first, threadIdx.x);
    commit_copies();
  };

  copy_rows<D, tile_queries, tile_threads>(
      q_tile, row_of(call.q, call.q_strides, b, first_of_block, h), call.q_strides.token,
      call.T - first_of_block, threadIdx.x);
  commit_copies();
  copy_step(0, 0);
  constexpr int kept = D == 64 ? D / 16 : 1;
  uint32_t q[kept][2][4];
  if constexpr (kept > 1) {
    wait_for_copies<1>();  // the queries; the first tiles may still be under way
    __syncthreads();
    for (int c = 0; c < kept; ++c)
      for (int r = 0; r < 2; ++r) load_queries<D>(q[c][r], q_tile, from + 16 * r, c);
  }

  OnlineRows rows[2];
  float mean[2][D / 8][4] = {};
  const int seen_by_first = keys_seen(call, first_query);
  const int seen_by_block = keys_seen(call, min(first_of_block + tile_queries, call.T) - 1);
  const int seen_by_warp =
      first_query < call.T ? keys_seen(call, min(first_query + warp_queries, call.T) - 1) : 0;
  for (int first = 0, now = 0; first < seen_by_block; first += Keys, now = 1 - now) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tiles are here, and all warps are done with the last step's
    if (first + Keys < seen_by_block) copy_step(1 - now, first + Keys);
    if (first >= seen_by_warp) continue;
    float scores[2][Keys / 8][4] = {};
    multiply_keys<D, Keys>(scores, q, q_tile + from * D, k_tile(now));
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int t = first_query + 16 * r + lane / 4;
      const int seen[2] = {keys_seen(call, t), keys_seen(call, t + 8)};
      if (first + Keys > seen_by_first) mask_scores(scores[r], first, seen);
      online_softmax(scores[r], mean[r], rows[r], scale);
    }
    multiply_values<D, Keys>(mean, scores, v_tile(now));
  }
  if (first_query >= call.T) return;
  __syncwarp();  // all lanes are done with the queries, over which the results are written
  for (int r = 0; r < 2; ++r)
    write_mean<D, D, tile_queries>(q_tile, from + 16 * r, mean[r], rows[r]);
  __syncwarp();
  store_rows<D, D, tile_queries, warp_queries>(
      q_tile, from, row_of(call.out, call.out_strides, b, first_query, h), call.out_strides.token,
      call.T - first_query);
}
// [/kernel]

template <int D, int Keys>
void launch(const AttentionCall<bf16>& call, int section) {
  const int tiles = query_tiles(call, tile_queries);
  T2T_LAUNCH((swizzle_async<D, Keys>), dim3(tiles * call.B * call.H), dim3(tile_threads),
             (shared_bytes<D, Keys>()), call, scale_log2(D), tiles, section);
}

/// Whether two of its blocks fit on a multiprocessor of this GPU.
template <int D, int Keys>
bool two_blocks_fit() {
  return blocks_of_multiprocessor({"swizzle_async", __FILE__, __LINE__}, swizzle_async<D, Keys>,
                                  tile_threads, shared_bytes<D, Keys>()) >= 2;
}

}  // namespace

int heads_of_section(const AttentionCall<bf16>& call) {
  // L2 has 40 MB on an A100, 50 MB on an H100.
  const long of_group = 2L * call.S * call.D * long(sizeof(bf16)), of_section = 16L << 20;
  return int(std::clamp(of_section * call.H / (of_group * call.G), 1L, long(call.B) * call.H));
}

void attend_swizzle_async(const AttentionCall<bf16>& call, int section) {
  expect_tiles(call);
  if (section < 0)
    throw std::invalid_argument("section: wanted at least 0, got " + std::to_string(section));
  section = std::min(section == 0 ? heads_of_section(call) : section, call.B * call.H);
  if (call.D == 64)
    launch<64, 64>(call, section);
  else if (two_blocks_fit<128, 48>())
    launch<128, 48>(call, section);
  else
    launch<128, 16>(call, section);
}

}  // namespace t2t
