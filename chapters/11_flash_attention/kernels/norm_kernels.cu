// RMSNorm, LayerNorm, and the sum of the residual stream with RMSNorm in one kernel.
//
//   y = gain · x / √(mean of x² + eps)        y = gain · (x − mean) / √(variance + eps) + bias
//
// A warp processes a row. Each lane sums its own elements, and the warp sums the lanes' sums by
// shuffles. A row of up to 1024 numbers is read once (warp_row.hpp). Gains are read by every row,
// from a cache.
#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/row_kernels.hpp"
#include "11_flash_attention/kernels/warp_row.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int warps = 4;  // of a block, one row for each

/// The row of this warp.
__device__ __forceinline__ long own_row() { return long(blockIdx.x) * warps + threadIdx.x / 32; }

unsigned blocks_for(int rows) { return (unsigned(rows) + warps - 1) / warps; }

__global__ void rms_norm_kernel(const float* x, const float* gain, float eps, int T, int C,
                                float* y) {
  const long t = own_row();
  if (t >= T) return;
  WarpRow row(x + t * C, C);
  y += t * C;

  float squares = 0;
  row.each([&](float number, int) { squares += number * number; });
  const float inverse_rms = 1 / sqrtf(warp_sum(squares) / C + eps);
  row.each([&](float number, int c) { y[c] = gain[c] * (number * inverse_rms); });
}

__global__ void layer_norm_kernel(const float* x, const float* gain, const float* bias, float eps,
                                  int T, int C, float* y) {
  const long t = own_row();
  if (t >= T) return;
  WarpRow row(x + t * C, C);
  y += t * C;

  float sum = 0, squares = 0;
  row.each([&](float number, int) { sum += number; });
  const float mean = warp_sum(sum) / C;
  // The mean of x² minus mean² would lose its digits where the mean is large.
  row.each([&](float number, int) { squares += (number - mean) * (number - mean); });
  const float inverse = 1 / sqrtf(warp_sum(squares) / C + eps);
  row.each([&](float number, int c) { y[c] = gain[c] * ((number - mean) * inverse) + bias[c]; });
}

/// added and x are two pieces of memory (__restrict__), so that added may be read ahead of the
/// writes to x.
__global__ void add_rows_kernel(const float* __restrict__ added, int T, int C,
                                float* __restrict__ x) {
  const long t = own_row();
  if (t >= T) return;
  added += t * C, x += t * C;
  WarpRow(x, C).each([&](float number, int c) { x[c] = number + added[c]; });
}

__global__ void add_rms_norm_kernel(const float* __restrict__ added, const float* gain, float eps,
                                    int T, int C, float* __restrict__ x, float* y) {
  const long t = own_row();
  if (t >= T) return;
  WarpRow row(x + t * C, C);
  added += t * C, x += t * C, y += t * C;

  // The sum is squared while it is still in a register.
  float squares = 0;
  row.each([&](float& number, int c) {
    x[c] = number += added[c];
    squares += number * number;
  });
  const float inverse_rms = 1 / sqrtf(warp_sum(squares) / C + eps);
  // In a long row, a lane rereads only what it wrote itself. No barrier is needed.
  row.each([&](float number, int c) { y[c] = gain[c] * (number * inverse_rms); });
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
