// RMSNorm of one row of the stream by one warp, rounded to bf16.
//
// The norm's kernel and few_rows.cu share it, so that a product of few rows, which computes the
// norm itself, multiplies the same bits as one of many rows.
#pragma once

#include <cstddef>

#include "04_causal_attention/kernels/warp_reduce.hpp"
#include "11_flash_attention/kernels/model/model_kernels.hpp"
#include "11_flash_attention/kernels/warp_row.hpp"

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

}  // namespace t2t
