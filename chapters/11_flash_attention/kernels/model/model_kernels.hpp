// The kernels that a whole model needs on a GPU beside attention. Weights, activations and the
// cache are bf16; the residual stream and all sums are float32.
//
//   embed            x[t] = table[ids[t]]                                        chapter 01
//   rms_norm         n = gain · x / √(mean of x² + eps), rounded to bf16         chapter 02
//   rope_and_append  q and k are rotated; k and v go into the cache              chapters 03, 05
//   store_product    y = n·wᵀ                                                    chapters 06, 09
//   add_product      x += h·wᵀ                                                   chapter 08
//   swiglu_product   h = silu(n·w_gateᵀ) ⊙ (n·w_upᵀ)                             chapter 07
//
// Products of up to `few_rows` rows are bound by the weights' bytes, and few_rows.cu reads each
// weight at full width; those of more rows run on the tensor cores (many_rows.cu). What differs
// from one token to the next (its id, its position, its sequence) is read from device memory, so
// that the launches of a step can be recorded once (cuda/graph.hpp).
//
// All pointers are device memory, all tensors are row-major without gaps. Each function throws
// std::invalid_argument, "T: wanted at least 1, got 0", unless sizes are at least 1, eps at least
// 0, and pointers not null, but for NormedRows::rows. Products also want `in` to be a multiple of
// 8, bf16 tensors at multiples of 16 bytes, T at most 65535 and `out` at most 4,194,240. What ids,
// positions and sequences hold is not checked.
#pragma once

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "cuda/half_types.hpp"

namespace t2t {

/// Which tokens the T rows of a pass are.
struct TokenRows {
  const int* positions;  // [T], in their sequences
  const int* sequences;  // [T]
  /// [T]: where a cache [G, S, D] of all sequences has their keys and values, as in chapter 15's
  /// pages. Null: at their positions in their sequences.
  const int* places = nullptr;
};

/// The keys and values of one layer.
struct LayerCache {
  bf16* keys;    // [sequences, G, S, D]
  bf16* values;  // [sequences, G, S, D]
  int S;
};

/// Rows of the stream that are read through RMSNorm.
struct NormedRows {
  const float* x;     // [at least T, C], the stream
  const int* rows;    // [T], which of its rows are read; null: the first T
  const float* gain;  // [C]
  float eps;
  bf16* scratch;  // [T, C], for the norms of more than few_rows rows
};

constexpr int few_rows = 4;

void launch_embed(const bf16* table,  // [V, C]
                  const int* ids,     // [T]
                  int T, int C,
                  float* x);  // [T, C]

/// Writes the norms to in.scratch.
void launch_rms_norm(const NormedRows& in, int T, int C);

/// Row t of the tables is position t. D must be 64 or 128, and H a multiple of G.
void launch_rope_and_append(const float* qkv,  // [T, H + 2·G, D]: queries, keys, values
                            const TokenRows& tokens,
                            const float* cos,  // [S, D/2]
                            const float* sin,  // [S, D/2]
                            RopePairs pairs, int T, int H, int G, int D,
                            bf16* q,  // [T, H, D], rotated
                            const LayerCache& cache);

/// y = norm(x)·wᵀ
void launch_store_product(const NormedRows& x,
                          const bf16* w,  // [out, in]
                          int T, int in, int out,
                          float* y);  // [T, out]

/// y += x·wᵀ
void launch_add_product(const bf16* x,  // [T, in]
                        const bf16* w,  // [out, in]
                        int T, int in, int out,
                        float* y);  // [T, out]

/// y = silu(norm(x)·w_gateᵀ) ⊙ (norm(x)·w_upᵀ), rounded to bf16
void launch_swiglu_product(const NormedRows& x,
                           const bf16* w_gate,  // [out, in]
                           const bf16* w_up,    // [out, in]
                           int T, int in, int out,
                           bf16* y);  // [T, out]

/// The checks of the functions above.
void expect_normed_rows(const NormedRows& x);
void expect_product_sizes(int T, int in, int out);
void expect_bf16_rows(const char* name, const bf16* rows);

}  // namespace t2t
