// What a card can do at best, and what attention costs without any of this chapter's ideas: the
// limits that gpu_bench.cpp holds the rungs against. Needs a GPU; cuBLAS where the build found it.
#pragma once

#include <functional>

#include "11_flash_attention/kernels.hpp"

namespace t2t {

/// Median milliseconds of one call by the card's own clock, after a warm-up. before is run ahead of
/// each call, outside the measured time.
double median_ms(const std::function<void()>& work, const std::function<void()>& before = {});

int multiprocessors();

/// Bytes a second, read and written together, of a plain copy of 1 GiB.
double copy_speed();

/// Overwrites 256 MiB, so that nothing of what was used before is left in L2.
void flush_l2();

/// Whether the functions below are there; without cuBLAS they throw std::runtime_error.
bool has_cublas();

/// FLOP/s of a bf16 matrix product of 8192³ with float32 sums.
double matrix_peak();

/// Attention in three steps with cuBLAS: scores (float32) and weights (bf16) in memory. For G = H
/// and no mask. Scratch: 6 bytes for each of B·H·T·S scores.
void attend_cublas(const AttentionCall<bf16>& call, float* scores, bf16* weights);

}  // namespace t2t
