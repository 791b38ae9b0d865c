// Decode in stretches: what a block does with the keys of one stretch, and how stretches are
// joined. Rung 5 and chapter 15 share this file. They differ in where a stretch begins, in how its
// keys reach shared memory, and in how many stretches a block takes.
//
// A block has 4 warps and up to 16 rows of queries, the query heads of a group. Each warp processes
// its own keys in steps of 16, while later ones are being copied. At the end the sums of the warps
// meet in shared memory. A stretch yields a mean, already divided, and a log-sum: log2 of the sum
// of exp2(score·scale), with log2(e) / √D as scale. A stretch without keys has log-sum -infinity.
//
// A row group is the rows of one block: those of a sequence, a group of heads and a tile of 16
// rows. Its stretches are computed by several blocks, and the block that arrives last joins them.
// Joining in a second kernel, as earlier versions did, costs the time between two kernels.
#pragma once

#include <cstddef>

#include "04_causal_attention/kernels/attention_call.hpp"
#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/async_tiles.hpp"
#include "11_flash_attention/kernels/decode/decode_scratch.hpp"
#include "11_flash_attention/kernels/fragments.hpp"

namespace t2t {

constexpr int decode_warps = 4, decode_threads = 32 * decode_warps;
constexpr int step_keys = 16;  // keys of a warp's step

/// What blocks leave for the one that joins: for each stretch of each row [B, T, H] a mean [D] and
/// a log-sum, to base 2; and for each row group how many of its stretches have arrived.
struct Stretches {
  float* means;       // [B, T, H, P, D]
  float* log_sums;    // [B, T, H, P]
  unsigned* arrived;  // [B, G, tiles of 16 rows]
};
inline Stretches stretches_in(DecodeScratch& scratch, std::size_t results, int D) {
  float* means = scratch.results.data();
  return {means, means + results * D, scratch.arrived.data()};
}

/// One step of a warp, keys s to s + 15, which are in its tiles. Row `half` of a lane sees the keys
/// before seen[half].
template <int D>
__device__ __forceinline__ void attend_step(const bf16* k_tile, const bf16* v_tile,
                                            const uint32_t (&q)[D / 16][4], int s,
                                            const int (&seen)[2], float scale,
                                            float (&mean)[D / 8][4], OnlineRows& rows) {
  uint32_t b[4], a[4];
  float scores[2][4] = {};
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    load_keys<D>(b, k_tile, 0, c);
    mma_16x8x16(scores[0], q[c], b[0], b[1]);
    mma_16x8x16(scores[1], q[c], b[2], b[3]);
  }
  if (s + step_keys > min(seen[0], seen[1])) mask_scores(scores, s, seen);
  online_softmax(scores, mean, rows, scale);
  pack_weights(a, scores[0], scores[1]);
#pragma unroll
  for (int c = 0; c < D / 16; ++c) {
    load_values<D>(b, v_tile, 0, c);
    mma_16x8x16(mean[2 * c], a, b[0], b[1]);
    mma_16x8x16(mean[2 * c + 1], a, b[2], b[3]);
  }
}

/// The sums of a block's warps, in shared memory: for each row the exponent of 2 that its sums are
/// relative to, the sum of its weights, and its mean, not yet divided.
template <int D>
struct WarpSums {
  float highest[decode_warps][packed_rows];
  float sums[decode_warps][packed_rows];
  float means[decode_warps][packed_rows][D];
  bool last_to_arrive;  // for arrives_last
};

/// Stores this warp's sums.
template <int D>
__device__ __forceinline__ void store_sums(const float (&mean)[D / 8][4], const OnlineRows& rows,
                                           float scale, WarpSums<D>& shared) {
  const int lane = threadIdx.x % 32, w = threadIdx.x / 32;
  for (int half = 0; half < 2; ++half) {
    const int r = 8 * half + lane / 4;
    const float sum = whole_sum(rows, half);
    if (lane % 4 == 0) shared.highest[w][r] = rows.highest[half] * scale, shared.sums[w][r] = sum;
    for (int n = 0; n < D / 8; ++n)
      for (int i = 0; i < 2; ++i)
        shared.means[w][r][8 * n + lane % 4 * 2 + i] = mean[n][2 * half + i];
  }
}

/// The sum of a row's weights over all warps, and channel d of weights times values. Both are
/// relative to 2^base. The sum is 0 when no warp had a key for the row.
struct RowSum {
  float base, sum, total;
};
template <int D>
__device__ __forceinline__ RowSum sum_warps(const WarpSums<D>& shared, int r, int d) {
  float top = -INFINITY, sum = 0, total = 0;
  for (int w = 0; w < decode_warps; ++w) top = fmaxf(top, shared.highest[w][r]);
  const float base = top == -INFINITY ? 0 : top;
  for (int w = 0; w < decode_warps; ++w) {
    const float weight = exp2f(shared.highest[w][r] - base);
    sum += weight * shared.sums[w][r];
    total += weight * shared.means[w][r][d];
  }
  return {base, sum, total};
}

/// Bytes of the tiles of a block's warps, with so many stages: steps for which a warp has tiles of
/// keys and of values.
template <int D>
constexpr int decode_tiles(int stages) {
  return decode_warps * stages * 2 * step_keys * D * int(sizeof(bf16));
}

/// Counts the `mine` stretches that this block has written, and returns whether all of its row
/// group's are there now. Called by all threads. `last` is in shared memory. Afterwards the counter
/// of a group whose stretches are all there is 0 again, for the next launch.
__device__ __forceinline__ bool arrives_last(unsigned* arrived, int mine, int all, bool& last) {
  __syncthreads();  // all threads of the block have written their results
  if (mine == all) return true;
  if (threadIdx.x == 0) {
    __threadfence();  // who sees the count below sees these results, too
    last = atomicAdd(arrived, unsigned(mine)) + mine == unsigned(all);
    if (last) atomicExch(arrived, 0u);
    __threadfence();  // what other blocks wrote before they counted is read after this
  }
  __syncthreads();
  return last;
}

/// Joins the P stretches of a row, of which means [P, D] and log_sums [P] are the first, in their
/// order. A warp does this, each lane for D / 32 channels; it reads 32 log-sums at once, and up to
/// 32 means before it adds the first. Four chains of sums, each over every fourth stretch, keep the
/// additions short.
template <int D>
__device__ __forceinline__ void join_row(const float* means, const float* log_sums, int P,
                                         bf16* out) {
  constexpr int width = D / 32, chains = 4;
  struct alignas(width * sizeof(float)) Channels {
    float of[width];
  };
  const int lane = threadIdx.x % 32;
  float top = -INFINITY, sum[chains] = {}, mean[chains][width] = {};
  for (int p = lane; p < P; p += 32) top = fmaxf(top, log_sums[p]);
  top = warp_max(top);
  for (int first = 0; first < P; first += 32) {
    Channels all[32];
#pragma unroll
    for (int p = 0; p < 32; ++p)
      all[p] = first + p < P ? reinterpret_cast<const Channels*>(means)[(first + p) * 32 + lane]
                             : Channels{};
    const float weights = first + lane < P ? exp2f(log_sums[first + lane] - top) : 0;
#pragma unroll
    for (int p = 0; p < 32; ++p) {
      const float weight = __shfl_sync(~0u, weights, p);
      sum[p % chains] += weight;
      for (int i = 0; i < width; ++i) mean[p % chains][i] += weight * all[p].of[i];
    }
  }
  for (int c = 1; c < chains; ++c) {
    sum[0] += sum[c];
    for (int i = 0; i < width; ++i) mean[0][i] += mean[c][i];
  }
  for (int i = 0; i < width; ++i) out[lane * width + i] = __float2bfloat16(mean[0][i] / sum[0]);
}

}  // namespace t2t
