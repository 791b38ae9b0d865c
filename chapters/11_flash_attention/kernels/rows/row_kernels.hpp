// The row kernels of a transformer block on a GPU, in float32. Each does little arithmetic per
// element, so that its time is the bytes that it moves divided by the memory's speed.
//
//   rms_norm   y = gain · x / √(mean of x² + eps)               chapter 02
//   layer_norm y = gain · (x − mean) / √(variance + eps) + bias chapter 02
//   rope       (a, b) → (a·cos − b·sin, a·sin + b·cos)          chapter 03
//   softmax    y = exp(x − highest) / Σ exp(x − highest)        chapter 04
//   swiglu     y = gate / (1 + exp(−gate)) · up                 chapter 07
//   product    y = x·Wᵀ, without a library
//
// A warp processes a row; 4 or 8 warps share one of over 1024 elements in the norms and in softmax.
// All pointers are device memory, all tensors are row-major without gaps, and any size is allowed.
// block_kernels.hpp makes a block of them.
//
// Each function throws std::invalid_argument, "T: wanted at least 1, got 0", unless sizes are at
// least 1 and pointers are not null.
#pragma once

#include "04_causal_attention/kernels/attention_call.hpp"  // expect_device

namespace t2t {

/// Which two of a head's D channels are pair i: (2i, 2i + 1) or (i, i + D/2).
enum class RopePairs { neighbours, halves };

/// y may be x. eps must be at least 0; with eps 0, a row of zeros gives NaN.
void launch_rms_norm(const float* x,     // [T, C]
                     const float* gain,  // [C]
                     float eps, int T, int C,
                     float* y);  // [T, C]

/// The same for LayerNorm, whose variance is the mean of (x − mean)².
void launch_layer_norm(const float* x,     // [T, C]
                       const float* gain,  // [C]
                       const float* bias,  // [C]
                       float eps, int T, int C,
                       float* y);  // [T, C]

/// x becomes x + added. added must not be x.
void launch_add_rows(const float* added,  // [T, C]
                     int T, int C,
                     float* x);  // [T, C]

/// launch_add_rows and then launch_rms_norm in one kernel, with the same bits: x becomes x + added,
/// and y its norm. x is read from memory once instead of twice. added, x and y must be different
/// memory.
void launch_add_rms_norm(const float* added,  // [T, C]
                         const float* gain,   // [C]
                         float eps, int T, int C,
                         float* x,   // [T, C]
                         float* y);  // [T, C]

/// In place. Row t is at position start + t, which must be a row of the tables. D must be even.
void launch_rope(const float* cos,  // [S, D/2]
                 const float* sin,  // [S, D/2]
                 int S, int start, int T, int heads, int D, RopePairs pairs,
                 float* x);  // [T, heads, D]

/// y may be x. −infinity gets weight 0. A row of −infinity alone becomes NaN.
void launch_softmax(const float* x,  // [T, S]
                    int T, int S,
                    float* y);  // [T, S]

/// y may be gate or up.
void launch_swiglu(const float* gate,  // [T, F]
                   const float* up,    // [T, F]
                   int T, int F,
                   float* y);  // [T, F]

/// T is at most 2,097,120. y must not be x.
void launch_product(const float* x,  // [T, in]
                    const float* w,  // [out, in]
                    int T, int in, int out,
                    float* y);  // [T, out]

/// The checks of the functions above.
void expect_size(const char* name, int got);
void expect_eps(float eps);

}  // namespace t2t
