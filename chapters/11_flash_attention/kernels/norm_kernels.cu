// RMSNorm, LayerNorm, and the sum of the residual stream with RMSNorm in one kernel.
//
//   y = gain · x / √(mean of x² + eps)        y = gain · (x − mean) / √(variance + eps) + bias
//
// A warp takes a row: lane i takes numbers i, i + 32, i + 64 …, so that the 32 lanes read 128
// neighbouring bytes at a time. Each lane sums its numbers, and the warp sums the lanes' sums by
// shuffles. The row is then read again, from a cache. Gains are read by every row, from a cache
// too. Expected: 80 % of a copy's speed or more.
#include "04_causal_attention/warp_reduce.hpp"
#include "11_flash_attention/kernels/row_kernels.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int warps = 4;  // of a block, one row for each

/// The row of this warp.
__device__ __forceinline__ long own_row() { return long(blockIdx.x) * warps + threadIdx.x / 32; }

unsigned blocks_for(int rows) { return (unsigned(rows) + warps - 1) / warps; }

__global__ void rms_norm_kernel(const float* x, const float* gain, float eps, int T, int C,
                                float* y) {
  const int lane = threadIdx.x % 32;
  const long t = own_row();
  if (t >= T) return;
  x += t * C, y += t * C;

  // Each lane sums every 32nd square, and the warp adds up the 32 sums.
  float squares = 0;
  for (int c = lane; c < C; c += 32) squares += x[c] * x[c];
  const float inverse_rms = 1 / sqrtf(warp_sum(squares) / C + eps);

  for (int c = lane; c < C; c += 32) y[c] = gain[c] * (x[c] * inverse_rms);
}

__global__ void layer_norm_kernel(const float* x, const float* gain, const float* bias, float eps,
                                  int T, int C, float* y) {
  const int lane = threadIdx.x % 32;
  const long t = own_row();
  if (t >= T) return;
  x += t * C, y += t * C;

  float sum = 0, squares = 0;
  for (int c = lane; c < C; c += 32) sum += x[c];
  const float mean = warp_sum(sum) / C;

  // The mean of x² minus mean² would lose its digits where the mean is large.
  for (int c = lane; c < C; c += 32) squares += (x[c] - mean) * (x[c] - mean);
  const float inverse = 1 / sqrtf(warp_sum(squares) / C + eps);

  for (int c = lane; c < C; c += 32) y[c] = gain[c] * ((x[c] - mean) * inverse) + bias[c];
}

__global__ void add_rows_kernel(const float* added, int T, int C, float* x) {
  const int lane = threadIdx.x % 32;
  const long t = own_row();
  if (t >= T) return;
  added += t * C, x += t * C;
  for (int c = lane; c < C; c += 32) x[c] += added[c];
}

__global__ void add_rms_norm_kernel(const float* added, const float* gain, float eps, int T, int C,
                                    float* x, float* y) {
  const int lane = threadIdx.x % 32;
  const long t = own_row();
  if (t >= T) return;
  added += t * C, x += t * C, y += t * C;

  // The sum is squared while it is still in a register.
  float squares = 0;
  for (int c = lane; c < C; c += 32) {
    const float sum = x[c] + added[c];
    x[c] = sum;
    squares += sum * sum;
  }
  const float inverse_rms = 1 / sqrtf(warp_sum(squares) / C + eps);

  // Each lane reads only what it wrote itself, so it needs no barrier.
  for (int c = lane; c < C; c += 32) y[c] = gain[c] * (x[c] * inverse_rms);
}

/// What all four check.
void expect_matrix(const float* x, int T, int C) {
  expect_size("T", T);
  expect_size("C", C);
  expect_device("x", x);
}

}  // namespace

void launch_rms_norm(const float* x, const float* gain, float eps, int T, int C, float* y) {
  expect_matrix(x, T, C);
  expect_device("gain", gain);
  expect_device("y", y);
  expect_eps(eps);
  T2T_LAUNCH(rms_norm_kernel, dim3(blocks_for(T)), dim3(32 * warps), 0, x, gain, eps, T, C, y);
}

void launch_layer_norm(const float* x, const float* gain, const float* bias, float eps, int T,
                       int C, float* y) {
  expect_matrix(x, T, C);
  expect_device("gain", gain);
  expect_device("bias", bias);
  expect_device("y", y);
  expect_eps(eps);
  T2T_LAUNCH(layer_norm_kernel, dim3(blocks_for(T)), dim3(32 * warps), 0, x, gain, bias, eps, T, C,
             y);
}

void launch_add_rows(const float* added, int T, int C, float* x) {
  expect_matrix(x, T, C);
  expect_device("added", added);
  T2T_LAUNCH(add_rows_kernel, dim3(blocks_for(T)), dim3(32 * warps), 0, added, T, C, x);
}

void launch_add_rms_norm(const float* added, const float* gain, float eps, int T, int C, float* x,
                         float* y) {
  expect_matrix(x, T, C);
  expect_device("added", added);
  expect_device("gain", gain);
  expect_device("y", y);
  expect_eps(eps);
  T2T_LAUNCH(add_rms_norm_kernel, dim3(blocks_for(T)), dim3(32 * warps), 0, added, gain, eps, T, C,
             x, y);
}

}  // namespace t2t
