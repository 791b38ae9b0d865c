// Rung 5: decode. One query per head attends to a long cache: little to compute, much to read.
//
// Changed from rung 4: the query heads of a group are the rows of one product, since they read the
// same keys, so the cache is read from memory once. The keys are cut into stretches, so that there
// is work for each multiprocessor. Each stretch leaves a mean and a log-sum, and they are joined
// with these as weights, as chapter 06 does on the CPU ("Flash-Decoding", Dao et al. 2023). Each
// warp takes keys of its own, with two further steps being copied, and waits for other warps only
// at the end. decode_stretches.hpp has what a block does with its keys. In a log-sum, m is already
// added. A stretch without keys has log-sum -infinity: weight 0.
// Measured on an H100, with a second kernel that joined the stretches: 70 % of a plain read's bytes
// per second for one sequence of 64 thousand keys, and 97 to 100 % from 0.5 GB of keys and values
// on. Now the block that arrives last joins them, which should take 2 µs less where a launch takes
// 14 to 28. Never run on a GPU.
#include <stdexcept>
#include <string>

#include "11_flash_attention/kernels/decode/decode_stretches.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int warps = decode_warps, threads = decode_threads;
constexpr int stages = 3;  // steps for which a warp has tiles of keys and of values

/// Shared memory of a block: the tiles of its warps, and later its sums.
template <int D>
constexpr int shared_bytes() {
  static_assert(sizeof(WarpSums<D>) <= decode_tiles<D>(stages));
  return decode_tiles<D>(stages);
}

/// Row r of a group's T·N pairs is query r / N, head r % N of the group.
struct RowPair {
  int t, h;
};
template <class Number>
__device__ RowPair pair_of(const AttentionCall<Number>& call, int g, int r) {
  const int N = call.H / call.G;
  return {r / N, g * N + r % N};
}

/// One warp's steps of 16 keys each, which begin at keys first, first + apart … below last.
template <int D>
__device__ void walk(const AttentionCall<bf16>& call, float scale, const bf16* keys,
                     const bf16* values, const uint32_t (&q)[D / 16][4], const int (&seen)[2],
                     int first, int last, int apart, bf16* tiles, float (&mean)[D / 8][4],
                     OnlineRows& rows) {
  constexpr int tile = step_keys * D;
  const int lane = threadIdx.x % 32;
  const auto copy_step = [&](int s, int stage) {
    bf16* k_tile = tiles + 2 * stage * tile;
    if (s < last) {
      copy_rows<D, step_keys, 32>(k_tile, keys + s * call.k_strides.token, call.k_strides.token,
                                  last - s, lane);
      copy_rows<D, step_keys, 32>(k_tile + tile, values + s * call.v_strides.token,
                                  call.v_strides.token, last - s, lane);
    }
    commit_copies();  // also when it is empty, since the wait below counts groups
  };
  for (int stage = 0; stage < stages; ++stage) copy_step(first + stage * apart, stage);
  for (int s = first, stage = 0; s < last; s += apart, stage = (stage + 1) % stages) {
    const bf16 *k_tile = tiles + 2 * stage * tile, *v_tile = k_tile + tile;
    wait_for_copies<stages - 1>();
    __syncwarp();  // the copies of all lanes are here
    attend_step<D>(k_tile, v_tile, q, s, seen, scale, mean, rows);
    __syncwarp();  // all lanes are done with this stage
    copy_step(s + stages * apart, stage);
  }
  wait_for_copies<0>();
}

/// Joins the sums of a block's warps into one mean and one log-sum, through shared memory.
template <int D>
__device__ void join_warps(const AttentionCall<bf16>& call, float scale,
                           const float (&mean)[D / 8][4], const OnlineRows& rows,
                           WarpSums<D>& shared, int b, int g, int first_row, Stretches out) {
  store_sums<D>(mean, rows, scale, shared);
  __syncthreads();

  const int pairs = call.T * (call.H / call.G);
  for (int i = threadIdx.x; i < packed_rows * D; i += threads) {
    const int r = i / D, d = i % D;
    if (first_row + r >= pairs) break;
    const auto [base, sum, total] = sum_warps(shared, r, d);
    const auto [t, h] = pair_of(call, g, first_row + r);
    const std::size_t at = ((std::size_t(b) * call.T + t) * call.H + h) * gridDim.x + blockIdx.x;
    if (gridDim.x == 1) {  // nothing to join: every query sees a key, so sum is above 0
      row_of(call.out, call.out_strides, b, t, h)[d] = __float2bfloat16(total / sum);
      continue;
    }
    out.means[at * D + d] = sum > 0 ? total / sum : 0;
    if (d == 0) out.log_sums[at] = base + log2f(sum);  // log2(0) is -infinity
  }
}

/// Joins the stretches of a block's rows.
template <int D>
__device__ void join_rows(const AttentionCall<bf16>& call, int b, int g, int first_row,
                          Stretches in) {
  const int pairs = call.T * (call.H / call.G), P = gridDim.x;
  for (int r = threadIdx.x / 32; r < packed_rows && first_row + r < pairs; r += warps) {
    const auto [t, h] = pair_of(call, g, first_row + r);
    const std::size_t at = ((std::size_t(b) * call.T + t) * call.H + h) * P;
    join_row<D>(in.means + at * D, in.log_sums + at, P,
                row_of(call.out, call.out_strides, b, t, h));
  }
}

// [kernel]
/// The grid is [stretches, B·G, tiles of 16 pairs].
template <int D>
__global__ void __launch_bounds__(threads, 2)
    decode_stretch(AttentionCall<bf16> call, const int* start, float scale, Stretches out) {
  T2T_DYNAMIC_SHARED(bf16, tiles);
  if (start != nullptr) call.start = *start, call.S = *start + call.T;
  const int b = blockIdx.y / call.G, g = blockIdx.y % call.G, lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32, first_row = blockIdx.z * packed_rows;
  const int pairs = call.T * (call.H / call.G);

  // This stretch's keys: first to last - 1, where no row of the block sees a key after last - 1.
  const int steps = (call.S + step_keys - 1) / step_keys;
  const int stretch = (steps + int(gridDim.x) - 1) / int(gridDim.x) * step_keys;
  const int first = min(long(blockIdx.x) * stretch, long(call.S));
  const int last_row = min(first_row + packed_rows, pairs) - 1;
  const int last = min(long(first) + stretch, long(keys_seen(call, pair_of(call, g, last_row).t)));

  const bf16* row[2] = {nullptr, nullptr};
  int seen[2] = {last, last};  // rows that are not there need no mask: they are not written
  for (int half = 0; half < 2; ++half) {
    const int r = first_row + 8 * half + lane / 4;
    if (r >= pairs) continue;
    const auto [t, h] = pair_of(call, g, r);
    row[half] = row_of(call.q, call.q_strides, b, t, h);
    seen[half] = min(keys_seen(call, t), last);
  }
  uint32_t q[D / 16][4];
  for (int c = 0; c < D / 16; ++c) load_rows(q[c], {row[0], row[1]}, 16 * c);

  OnlineRows rows;
  float mean[D / 8][4] = {};
  walk<D>(call, scale, row_of(call.k, call.k_strides, b, 0, g),
          row_of(call.v, call.v_strides, b, 0, g), q, seen, first + warp * step_keys, last,
          warps * step_keys, tiles + warp * stages * 2 * step_keys * D, mean, rows);
  __syncthreads();  // all warps are done with their tiles, whose memory is used again
  WarpSums<D>& sums = *reinterpret_cast<WarpSums<D>*>(tiles);
  join_warps<D>(call, scale, mean, rows, sums, b, g, first_row, out);
  if (gridDim.x == 1) return;
  unsigned* arrived = out.arrived + blockIdx.y * gridDim.z + blockIdx.z;
  if (arrives_last(arrived, 1, gridDim.x, sums.last_to_arrive))
    join_rows<D>(call, b, g, first_row, out);
}
// [/kernel]

template <int D>
void launch(const AttentionCall<bf16>& call, int splits, Stretches stretches, const int* start) {
  const int tiles = packed_tiles(call.T * (call.H / call.G));
  T2T_LAUNCH(decode_stretch<D>, dim3(splits, call.B * call.G, tiles), dim3(threads),
             shared_bytes<D>(), call, start, scale_log2(D), stretches);
}

}  // namespace

int decode_blocks(int D) {
  const LaunchSite site = {"decode_stretch", __FILE__, __LINE__};
  return D == 64
             ? blocks_of_multiprocessor(site, decode_stretch<64>, threads, shared_bytes<64>())
             : blocks_of_multiprocessor(site, decode_stretch<128>, threads, shared_bytes<128>());
}

void attend_decode(const AttentionCall<bf16>& call, int splits, DecodeScratch& scratch,
                   const int* start) {
  expect_tiles(call);
  if (splits < 1 || splits > 65535)
    throw std::invalid_argument("splits: wanted 1 to 65535, got " + std::to_string(splits));
  // A grid has at most 65535 blocks along z.
  const long pairs = long(call.T) * (call.H / call.G), most = 65535L * packed_rows;
  if (pairs > most)
    throw std::invalid_argument("T·H/G: wanted at most " + std::to_string(most) + ", got " +
                                std::to_string(pairs));
  if (splits > 1) expect_room(scratch, decode_scratch(call, splits));
  const std::size_t results = std::size_t(call.B) * call.T * call.H * splits;
  const Stretches stretches = stretches_in(scratch, results, call.D);
  call.D == 64 ? launch<64>(call, splits, stretches, start)
               : launch<128>(call, splits, stretches, start);
}

}  // namespace t2t
