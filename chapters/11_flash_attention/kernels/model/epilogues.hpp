// What becomes of a product's sums, its epilogue: they are stored, added to the residual stream, or
// those of the gate and of up become one hidden element. few_rows.cu and many_rows.cu share it.
//
// One or two matrices are multiplied by the same rows, so that one thread has the sums of both.
#pragma once

#include <cstddef>

#include "cuda/kernel.hpp"

namespace t2t {

struct StoreSums {
  static constexpr int matrices = 1;
  const bf16* w;  // [out, in]
  float* y;       // [T, out]

  __device__ const bf16* weights(int) const { return w; }
  __device__ void store(std::size_t at, const float (&sums)[1]) const { y[at] = sums[0]; }
};

struct AddSums {
  static constexpr int matrices = 1;
  const bf16* w;  // [out, in]
  float* y;       // [T, out]

  __device__ const bf16* weights(int) const { return w; }
  __device__ void store(std::size_t at, const float (&sums)[1]) const { y[at] += sums[0]; }
};

struct SwigluSums {
  static constexpr int matrices = 2;
  const bf16 *w_gate, *w_up;  // [out, in]
  bf16* y;                    // [T, out]

  __device__ const bf16* weights(int m) const { return m == 0 ? w_gate : w_up; }
  __device__ void store(std::size_t at, const float (&sums)[2]) const {
    // Far below zero expf(−gate) is infinite, and gate / infinity is −0, as it should be.
    const float silu = sums[0] / (1 + expf(-sums[0]));
    y[at] = __float2bfloat16(silu * sums[1]);
  }
};

}  // namespace t2t
