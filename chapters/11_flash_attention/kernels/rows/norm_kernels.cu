// RMSNorm, LayerNorm, and the sum of the residual stream with RMSNorm in one kernel.
//
//   y = gain · x / √(mean of x² + eps)        y = gain · (x − mean) / √(variance + eps) + bias
//
// A warp processes a row of up to 1024 elements, and a block of 4 or 8 warps a longer one. Each
// lane sums its own elements, the warp sums the lanes' sums by shuffles, and the block the warps'
// sums in shared memory (row_parts.hpp). Gains are read by every row, from a cache.
//
// Changed from one warp for any row: rows of 1025 to 8192 elements stay in registers, too, and are
// read once instead of two or three times. At [65536, 4096] a norm then moves 2 GiB instead of 3
// (RMSNorm) or 4 (LayerNorm), and the sum with RMSNorm 4 instead of 5.
// Measured: rows of 576 elements, 97 % of a copy on an H100. The kernels for longer rows have never
// run on a GPU.
#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "11_flash_attention/kernels/rows/row_parts.hpp"
#include "11_flash_attention/kernels/rows/warp_row.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

template <int Warps>
__global__ void rms_norm_kernel(const float* x, const float* gain, float eps, int T, int C,
                                float* y) {
  __shared__ float of_warps[Warps];
  const RowPart part = own_part<Warps>(C);
  if (part.t >= T) return;
  WarpRow row(x + part.t * C + part.first, part.size);
  gain += part.first, y += part.t * C + part.first;

  float squares = 0;
  row.each([&](float number, int) { squares += number * number; });
  const float inverse_rms = 1 / sqrtf(row_sum(squares, of_warps) / C + eps);
  row.each([&](float number, int c) { y[c] = gain[c] * (number * inverse_rms); });
}

template <int Warps>
__global__ void layer_norm_kernel(const float* x, const float* gain, const float* bias, float eps,
                                  int T, int C, float* y) {
  __shared__ float of_warps[Warps];
  const RowPart part = own_part<Warps>(C);
  if (part.t >= T) return;
  WarpRow row(x + part.t * C + part.first, part.size);
  gain += part.first, bias += part.first, y += part.t * C + part.first;

  float sum = 0, squares = 0;
  row.each([&](float number, int) { sum += number; });
  const float mean = row_sum(sum, of_warps) / C;
  // The mean of x² minus mean² would lose its digits where the mean is large.
  row.each([&](float number, int) { squares += (number - mean) * (number - mean); });
  const float inverse = 1 / sqrtf(row_sum(squares, of_warps) / C + eps);
  row.each([&](float number, int c) { y[c] = gain[c] * ((number - mean) * inverse) + bias[c]; });
}

/// A sum uses each element once: a warp for a row is enough. added and x are two pieces of memory
/// (__restrict__), so that added may be read ahead of the writes to x.
__global__ void add_rows_kernel(const float* __restrict__ added, int T, int C,
                                float* __restrict__ x) {
  const long t = own_part<1>(C).t;
  if (t >= T) return;
  added += t * C, x += t * C;
  WarpRow(x, C).each([&](float number, int c) { x[c] = number + added[c]; });
}

template <int Warps>
__global__ void add_rms_norm_kernel(const float* __restrict__ added, const float* gain, float eps,
                                    int T, int C, float* __restrict__ x, float* y) {
  __shared__ float of_warps[Warps];
  const RowPart part = own_part<Warps>(C);
  if (part.t >= T) return;
  const long at = part.t * C + part.first;
  WarpRow row(x + at, part.size);
  added += at, gain += part.first, x += at, y += at;

  // The sum is squared while it is still in a register.
  float squares = 0;
  row.each([&](float& number, int c) {
    x[c] = number += added[c];
    squares += number * number;
  });
  const float inverse_rms = 1 / sqrtf(row_sum(squares, of_warps) / C + eps);
  // In a very long row, a lane rereads only what it wrote itself.
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
  launch_for_row(C, [&](auto warps) {
    T2T_LAUNCH(rms_norm_kernel<warps>, blocks_of_rows<warps>(T), threads_of_rows<warps>(), 0, x,
               gain, eps, T, C, y);
  });
}

void launch_layer_norm(const float* x, const float* gain, const float* bias, float eps, int T,
                       int C, float* y) {
  expect_matrix(x, T, C);
  expect_device("gain", gain);
  expect_device("bias", bias);
  expect_device("y", y);
  expect_eps(eps);
  launch_for_row(C, [&](auto warps) {
    T2T_LAUNCH(layer_norm_kernel<warps>, blocks_of_rows<warps>(T), threads_of_rows<warps>(), 0, x,
               gain, bias, eps, T, C, y);
  });
}

void launch_add_rows(const float* added, int T, int C, float* x) {
  expect_matrix(x, T, C);
  expect_device("added", added);
  T2T_LAUNCH(add_rows_kernel, blocks_of_rows<1>(T), threads_of_rows<1>(), 0, added, T, C, x);
}

void launch_add_rms_norm(const float* added, const float* gain, float eps, int T, int C, float* x,
                         float* y) {
  expect_matrix(x, T, C);
  expect_device("added", added);
  expect_device("gain", gain);
  expect_device("y", y);
  expect_eps(eps);
  launch_for_row(C, [&](auto warps) {
    T2T_LAUNCH(add_rms_norm_kernel<warps>, blocks_of_rows<warps>(T), threads_of_rows<warps>(), 0,
               added, gain, eps, T, C, x, y);
  });
}

}  // namespace t2t
