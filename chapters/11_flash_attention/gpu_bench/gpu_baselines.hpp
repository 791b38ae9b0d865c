// What gpu_bench.cpp compares the rungs with: attention by cuBLAS with the scores in memory. Needs
// a GPU and cuBLAS.
#pragma once

#include "11_flash_attention/kernels/kernels.hpp"

namespace t2t {

/// Whether attend_cublas accepts this call: no mask, G = H, S = 512, 1024, 2048 or 4096, and
/// tensors in which the heads of all sequences follow one another, [B, H, T, D].
bool cublas_takes(const AttentionCall<bf16>& call);

/// Attention in three launches, with scores (float32) and weights (bf16) in memory: each has room
/// for B·H·T·S elements. Throws std::runtime_error without cuBLAS.
void attend_cublas(const AttentionCall<bf16>& call, float* scores, bf16* weights);

}  // namespace t2t
