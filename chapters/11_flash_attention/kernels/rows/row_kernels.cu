// RoPE, softmax and SwiGLU by rows.
//
//   (a, b) → (a·cos − b·sin, a·sin + b·cos)     exp(x − highest) / Σ     gate / (1 + e^−gate) · up
//
// Softmax takes as many warps for a row of scores as the norms do (row_parts.hpp), and RoPE one
// warp for each row of a head. SwiGLU needs nothing of its row: a thread takes four numbers, all of
// which it reads before it computes. Softmax of rows of over 1024 scores has never run on a GPU.
// The table of cosines and sines comes from the host, in which angles are doubles.
#include <stdexcept>
#include <string>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "11_flash_attention/kernels/rows/row_parts.hpp"
#include "11_flash_attention/kernels/rows/warp_row.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int warps = 4;        // of a block of rope_kernel, one row for each
constexpr int threads = 256;    // of a block of swiglu_kernel
constexpr int of_a_thread = 4;  // numbers, `threads` apart

/// A row of this kernel is one head of one token: row t·heads + h.
__global__ void rope_kernel(const float* cos, const float* sin, int start, long rows, int heads,
                            int D, bool neighbours, float* x) {
  const int lane = threadIdx.x % 32, pairs = D / 2;
  const long row = long(blockIdx.x) * warps + threadIdx.x / 32;
  if (row >= rows) return;
  const long position = start + row / heads;
  cos += position * pairs, sin += position * pairs, x += row * D;

  for (int i = lane; i < pairs; i += 32) {
    const int first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + pairs;
    const float a = x[first], b = x[second];
    x[first] = a * cos[i] - b * sin[i];
    x[second] = a * sin[i] + b * cos[i];
  }
}

template <int Warps>
__global__ void softmax_kernel(const float* x, int T, int S, float* y) {
  __shared__ float of_warps[Warps];
  const RowPart part = own_part<Warps>(S);
  if (part.t >= T) return;
  WarpRow row(x + part.t * S + part.first, part.size);
  y += part.t * S + part.first;

  float highest = -INFINITY, sum = 0;
  row.each([&](float score, int) { highest = fmaxf(highest, score); });
  highest = row_max(highest, of_warps);
  row.each([&](float score, int) { sum += expf(score - highest); });
  sum = row_sum(sum, of_warps);
  row.each([&](float score, int s) { y[s] = expf(score - highest) / sum; });
}

__global__ void swiglu_kernel(const float* gate, const float* up, long count, float* y) {
  const long first = long(blockIdx.x) * threads * of_a_thread + threadIdx.x;
  float gates[of_a_thread], ups[of_a_thread];
#pragma unroll
  for (int n = 0; n < of_a_thread; ++n)
    if (const long i = first + n * threads; i < count) gates[n] = gate[i], ups[n] = up[i];
#pragma unroll
  for (int n = 0; n < of_a_thread; ++n)
    if (const long i = first + n * threads; i < count)
      // Far below zero expf(−gate) is infinite, and gate / infinity is −0, as it should be.
      y[i] = gates[n] / (1 + expf(-gates[n])) * ups[n];
}

/// A grid has at most 2^31 − 1 blocks along x.
unsigned blocks_for(long count, int of_a_block, const char* name) {
  const long blocks = (count + of_a_block - 1) / of_a_block;
  if (blocks > 2147483647L)
    throw std::invalid_argument(std::string(name) + ": wanted at most " +
                                std::to_string(2147483647L * of_a_block) + ", got " +
                                std::to_string(count));
  return unsigned(blocks);
}

void expect_positions_in_table(int start, int T, int S) {
  if (start < 0)
    throw std::invalid_argument("start: wanted at least 0, got " + std::to_string(start));
  if (long(start) + T > S)
    throw std::invalid_argument("start + T: wanted at most S = " + std::to_string(S) + ", got " +
                                std::to_string(long(start) + T));
}

}  // namespace

void launch_rope(const float* cos, const float* sin, int S, int start, int T, int heads, int D,
                 RopePairs pairs, float* x) {
  expect_size("T", T);
  expect_size("heads", heads);
  if (D < 2 || D % 2 != 0)
    throw std::invalid_argument("D: wanted an even number above 0, got " + std::to_string(D));
  expect_positions_in_table(start, T, S);
  expect_device("cos", cos);
  expect_device("sin", sin);
  expect_device("x", x);
  const long rows = long(T) * heads;
  T2T_LAUNCH(rope_kernel, dim3(blocks_for(rows, warps, "T·heads")), dim3(32 * warps), 0, cos, sin,
             start, rows, heads, D, pairs == RopePairs::neighbours, x);
}

void launch_softmax(const float* x, int T, int S, float* y) {
  expect_size("T", T);
  expect_size("S", S);
  expect_device("x", x);
  expect_device("y", y);
  launch_for_row(S, [&](auto warps) {
    T2T_LAUNCH(softmax_kernel<warps>, blocks_of_rows<warps>(T), threads_of_rows<warps>(), 0, x, T,
               S, y);
  });
}

void launch_swiglu(const float* gate, const float* up, int T, int F, float* y) {
  expect_size("T", T);
  expect_size("F", F);
  expect_device("gate", gate);
  expect_device("up", up);
  expect_device("y", y);
  const long count = long(T) * F;
  T2T_LAUNCH(swiglu_kernel, dim3(blocks_for(count, threads * of_a_thread, "T·F")), dim3(threads), 0,
             gate, up, count, y);
}

}  // namespace t2t
