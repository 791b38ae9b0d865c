// The maximum and the sum over the 32 threads (lanes) of a warp, by shuffles. Every lane gets the
// result.
#pragma once

#include "cuda/kernel.hpp"

namespace t2t {

__device__ __forceinline__ float warp_max(float x) {
  for (int apart = 16; apart > 0; apart /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, apart));
  return x;
}

__device__ __forceinline__ float warp_sum(float x) {
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(~0u, x, apart);
  return x;
}

}  // namespace t2t
