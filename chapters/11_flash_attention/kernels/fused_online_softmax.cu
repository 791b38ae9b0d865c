// Rung 1: one kernel, with no scores in memory. Each warp processes one query and 32 keys at a
// time, and carries the highest score so far, the sum of exponentials, and the sum of values
// weighted by them, which is divided at the end. When the highest score rises, both sums are scaled
// down to it (Milakov & Gimelshein 2018).
//
// Changed from rung 0: no memory for T·S scores, and no reads and writes of them. A lane reads its
// key 4 numbers at a time, but neighbouring lanes still read different rows (not coalesced), and
// each query still reads all its keys and values for itself: 2·D floats a key for 4·D FLOPs.
// Memory alone would allow 1.7 TFLOP/s on an H100 in float32; caches raise that. Measured: 3.2.
#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

namespace {

constexpr int warps = 4;  // of a block; each handles one query

template <int D>
__device__ float dot(const float* x, const float* y) {
  float sum = 0;
  for (int d = 0; d < D; d += 4) {
    const float4 a = *reinterpret_cast<const float4*>(x + d);
    const float4 b = *reinterpret_cast<const float4*>(y + d);
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  return sum;
}

// [kernel]
/// The grid is [queries, H, B].
template <int D>
__global__ void __launch_bounds__(32 * warps)
    fused_online_softmax(AttentionCall<float> call, float scale) {
  const int lane = threadIdx.x % 32, t = blockIdx.x * warps + threadIdx.x / 32;
  const int b = blockIdx.z, h = blockIdx.y, g = h / (call.H / call.G);
  if (t >= call.T) return;
  const float* q = row_of(call.q, call.q_strides, b, t, h);
  const int seen = keys_seen(call, t);

  float highest = -INFINITY, sum = 0, mean[D / 32] = {};
  for (int first = 0; first < seen; first += 32) {
    // Each lane computes the score of one key. Lanes past the last key get weight 0.
    const int s = first + lane;
    const float score =
        s < seen ? scale * dot<D>(q, row_of(call.k, call.k_strides, b, s, g)) : -INFINITY;

    // Weights are relative to the highest score so far; earlier sums are rescaled to it.
    const float before = highest;
    highest = fmaxf(before, warp_max(score));
    const float weight = expf(score - highest), rescale = expf(before - highest);
    sum = sum * rescale + weight;  // over this lane's keys; added up after the loop
    for (float& channel : mean) channel *= rescale;

    // Each lane sums D / 32 channels of the values; lane i has the weight of key first + i.
    for (int i = 0; i < 32 && first + i < seen; ++i) {
      const float* v = row_of(call.v, call.v_strides, b, first + i, g);
      const float shared_weight = __shfl_sync(~0u, weight, i);
      for (int c = 0; c < D / 32; ++c) mean[c] += shared_weight * v[32 * c + lane];
    }
  }
  sum = warp_sum(sum);
  float* out = row_of(call.out, call.out_strides, b, t, h);
  for (int c = 0; c < D / 32; ++c) out[32 * c + lane] = mean[c] / sum;
}
// [/kernel]

template <int D>
void launch(const AttentionCall<float>& call) {
  const dim3 grid((call.T + warps - 1) / warps, call.H, call.B);
  T2T_LAUNCH(fused_online_softmax<D>, grid, dim3(32 * warps), 0, call, 1 / sqrtf(float(D)));
}

}  // namespace

void attend_fused(const AttentionCall<float>& call) {
  expect_tiles(call);
  call.D == 64 ? launch<64>(call) : launch<128>(call);
}

}  // namespace t2t
