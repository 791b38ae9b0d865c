// The two 16-bit floats, with CUDA's names and rounding: CUDA's own types under nvcc, the
// stand-in's elsewhere. Host code that prepares 16-bit tensors includes this too. Both have the
// same names and sizes, so host code can be linked with kernels of both builds.
//
// Chapters 10 and 12 teach how a half becomes a float and the other way round, so they have this in
// words of their own; a check of chapter 12 holds them equal to the stand-in's.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#else
#include "cuda_on_cpu/half_types.hpp"
#endif

namespace t2t {

using bf16 = __nv_bfloat16;
using half = __half;

}  // namespace t2t
