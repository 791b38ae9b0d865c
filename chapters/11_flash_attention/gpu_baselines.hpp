// What gpu_bench.cpp compares the rungs with: the speed of a plain copy, of a matrix product, and
// of attention by cuBLAS with the scores in memory. Needs a GPU; the last two need cuBLAS.
#pragma once

#include <functional>

#include "11_flash_attention/kernels.hpp"

namespace t2t {

/// Median milliseconds of one call of work, measured by the card's events, after three calls as a
/// warm-up. before runs before each call, outside the measured time.
double median_ms(const std::function<void()>& work, const std::function<void()>& before = {});

/// How many multiprocessors the card has.
int multiprocessors();

/// Bytes a second of a plain copy of 1 GiB: bytes read and bytes written together.
double copy_speed();

/// Overwrites 256 MiB, so that no data of earlier calls is left in the L2 cache.
void flush_l2();

/// Whether the build found cuBLAS. Without it the functions below throw std::runtime_error.
bool has_cublas();

/// FLOP/s of a product of two bf16 matrices [8192, 8192] with float32 sums.
double matrix_peak();

/// Attention in three steps with cuBLAS, with scores (float32) and weights (bf16) in memory: each
/// has room for B·H·T·S numbers. For G = H and no mask.
void attend_cublas(const AttentionCall<bf16>& call, float* scores, bf16* weights);

}  // namespace t2t
