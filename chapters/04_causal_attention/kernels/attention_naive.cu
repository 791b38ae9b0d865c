// Rung 0 of chapter 11's ladder: the formula with one kernel for each step, in float32. Scores and
// weights [B, H, T, S] lie in device memory.
//
// The products read the same rows again for each value that they compute; the GPU's caches serve
// most of these reads. The scores, T·S values for each head, do not fit a cache: they are written
// three times and read 3 + D/32 times, which is most of the traffic to memory. These kernels are
// there to be read, and to check the others. Chapter 11 begins by not storing the scores.
// Measured together: 0.9 TFLOP/s of an H100's 67 in float32, at D = 128. Each alone: not yet.
#include <stdexcept>
#include <string>

#include "04_causal_attention/kernels/attention_naive.hpp"
#include "04_causal_attention/kernels/warp_reduce.hpp"

namespace t2t {

namespace {

constexpr int tile_keys = 32, tile_queries = 8;  // scores of a block, one thread for each
constexpr int warps = 4;  // of a block of the other two kernels, one row for each

/// Where the scores of one query of one head begin, [S].
__device__ float* scores_of(const AttentionCall<float>& call, float* scores, int b, int h, int t) {
  return scores + ((std::size_t(b) * call.H + h) * call.T + t) * call.S;
}

/// Each thread computes one score. The grid is [keys, queries, B·H].
__global__ void naive_scores_kernel(AttentionCall<float> call, float scale, float* scores) {
  const int s = blockIdx.x * tile_keys + threadIdx.x, t = blockIdx.y * tile_queries + threadIdx.y;
  const int b = blockIdx.z / call.H, h = blockIdx.z % call.H, g = h / (call.H / call.G);
  if (s >= call.S || t >= call.T) return;
  float score = -INFINITY;
  if (s < keys_seen(call, t)) {
    const float* q = row_of(call.q, call.q_strides, b, t, h);
    const float* k = row_of(call.k, call.k_strides, b, s, g);
    score = 0;
    for (int d = 0; d < call.D; ++d) score += q[d] * k[d];
  }
  scores_of(call, scores, b, h, t)[s] = score * scale;
}

/// Each warp turns one row of scores into weights, in place. The grid is [queries, B·H].
__global__ void naive_softmax_kernel(AttentionCall<float> call, float* scores) {
  const int lane = threadIdx.x % 32, t = blockIdx.x * warps + threadIdx.x / 32;
  if (t >= call.T) return;
  float* row = scores_of(call, scores, blockIdx.y / call.H, blockIdx.y % call.H, t);
  float highest = -INFINITY, sum = 0;
  for (int s = lane; s < call.S; s += 32) highest = fmaxf(highest, row[s]);
  highest = warp_max(highest);
  for (int s = lane; s < call.S; s += 32) sum += row[s] = expf(row[s] - highest);
  sum = warp_sum(sum);
  for (int s = lane; s < call.S; s += 32) row[s] /= sum;
}

/// Each warp computes one row of out, each of its threads every 32nd channel. The grid is [queries,
/// B·H].
__global__ void naive_values_kernel(AttentionCall<float> call, float* weights) {
  const int lane = threadIdx.x % 32, t = blockIdx.x * warps + threadIdx.x / 32;
  if (t >= call.T) return;
  const int b = blockIdx.y / call.H, h = blockIdx.y % call.H, g = h / (call.H / call.G);
  const float* row = scores_of(call, weights, b, h, t);
  for (int d = lane; d < call.D; d += 32) {
    float mean = 0;
    for (int s = 0; s < call.S; ++s) mean += row[s] * row_of(call.v, call.v_strides, b, s, g)[d];
    row_of(call.out, call.out_strides, b, t, h)[d] = mean;
  }
}

/// Throws std::invalid_argument for a call whose sizes the three grids do not take.
void expect_naive(const AttentionCall<float>& call) {
  expect_call(call);
  // A grid has at most 65535 blocks along y.
  if (call.T > 65535 * tile_queries)
    throw std::invalid_argument("T: wanted at most " + std::to_string(65535 * tile_queries) +
                                ", got " + std::to_string(call.T));
}

}  // namespace

NaiveLaunches naive_launches(const AttentionCall<float>& call) {
  const unsigned heads = call.B * call.H;
  const dim3 tiles((call.S + tile_keys - 1) / tile_keys, (call.T + tile_queries - 1) / tile_queries,
                   heads);
  const Launch rows{dim3((call.T + warps - 1) / warps, heads), dim3(32 * warps)};
  return {{tiles, dim3(tile_keys, tile_queries)}, rows, rows};
}

std::size_t naive_scores(const AttentionCall<float>& call) {
  return std::size_t(call.B) * call.H * call.T * call.S;
}

void launch_naive_scores(const AttentionCall<float>& call, float* scores) {
  expect_naive(call);
  const Launch at = naive_launches(call).scores;
  const float scale = 1 / sqrtf(float(call.D));
  T2T_LAUNCH(naive_scores_kernel, at.grid, at.block, 0, call, scale, scores);
}

void launch_naive_softmax(const AttentionCall<float>& call, float* scores) {
  expect_naive(call);
  const Launch at = naive_launches(call).softmax;
  T2T_LAUNCH(naive_softmax_kernel, at.grid, at.block, 0, call, scores);
}

void launch_naive_values(const AttentionCall<float>& call, float* weights) {
  expect_naive(call);
  const Launch at = naive_launches(call).values;
  T2T_LAUNCH(naive_values_kernel, at.grid, at.block, 0, call, weights);
}

void attend_naive(const AttentionCall<float>& call, float* scores) {
  launch_naive_scores(call, scores);
  launch_naive_softmax(call, scores);
  launch_naive_values(call, scores);
}

}  // namespace t2t
