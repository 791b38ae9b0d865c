// RMSNorm of one row of the stream by one warp, rounded to bf16, and how a product of few rows gets
// its row of x.
//
// The norm's kernel and few_rows.cu share it, so that a product of few rows, which computes the
// norm itself, multiplies the same bits as one of many rows. So does chapter 12's product with
// packed weights.
#pragma once

#include <cstddef>

#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "11_flash_attention/kernels/rows/warp_row.hpp"

namespace t2t {

/// Calls put(c, y) for those elements y of row t's norm that this lane has.
template <class Put>
__device__ __forceinline__ void norm_row(const NormedRows& in, int t, int C, Put put) {
  const int row_of_stream = in.rows != nullptr ? in.rows[t] : t;
  WarpRow row(in.x + std::size_t(row_of_stream) * C, C);
  float squares = 0;
  row.each([&](float number, int) { squares += number * number; });
  const float inverse_rms = 1 / sqrtf(warp_sum(squares) / C + in.eps);
  row.each(
      [&](float number, int c) { put(c, __float2bfloat16(in.gain[c] * (number * inverse_rms))); });
}

// A product of few rows has blocks of this size. A block goes on to further rows of weights.
constexpr int product_warps = 8, product_threads = 32 * product_warps;
constexpr int product_blocks_per_multiprocessor = 8;

/// How a block of a product brings row t of x into shared memory, with all of its threads.
struct PlainInput {
  const bf16* x;  // [T, in]

  __device__ void load(int t, int in, bf16* to) const {
    const bf16* from = x + std::size_t(t) * in;
    for (int c = 8 * threadIdx.x; c < in; c += 8 * product_threads)
      *reinterpret_cast<uint4*>(to + c) = *reinterpret_cast<const uint4*>(from + c);
  }
};
struct NormedInput {
  NormedRows x;

  /// Each warp computes the whole norm, and writes the 32 elements that are its own of each 256.
  __device__ void load(int t, int in, bf16* to) const {
    const int warp = threadIdx.x / 32;
    norm_row(x, t, in, [&](int c, bf16 y) {
      if (c / 32 % product_warps == warp) to[c] = y;
    });
  }
};

}  // namespace t2t
