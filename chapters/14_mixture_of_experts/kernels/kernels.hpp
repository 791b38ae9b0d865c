// A mixture's experts on a GPU: one launch computes a product of all experts, however unevenly the
// router has distributed the tokens.
//
//   hidden[r]       = silu(x[t]·w_gate[e]ᵀ) ⊙ (x[t]·w_up[e]ᵀ)    for row r, a token t of expert e
//   results[choice] = weights[choice] · (hidden[r]·w_down[e]ᵀ)   for the choice that row r is
//   y[t]            = Σ over the k choices of t of results[choice]
//
// Rows are in the order of the experts, as experts.hpp's assign puts them. Elements are bf16, as on
// the ladder of chapter 11 from rung 3 on. Sums, weights, results and y are float32. A hidden
// element is rounded to bf16; apart from that, y is chapter 14's formula with another order of
// sums. A token's result does not depend on the other tokens, and the same call always computes the
// same bits.
//
// All pointers are device memory, and all tensors are row-major without gaps.
//
// Each function throws std::invalid_argument, "T: wanted at least 1, got 0", unless sizes are at
// least 1 and pointers not null. The products also want C and F to be multiples of 8, C at most
// 8,388,480, F at most 4,194,240, T·k at most 2^31 − 1, and tensors at addresses that are multiples
// of 16, as DeviceBuffer's are. What begin and choices hold is not checked.
#pragma once

#include "cuda/half_types.hpp"

namespace t2t {

/// Which rows belong to which expert. Rows from begin[E] on, if there are any, belong to none, and
/// are neither read nor written.
struct ExpertRows {
  int T, k, E;         // tokens, experts of a token, experts
  const int* begin;    // [E + 1]: expert e has the rows begin[e] … begin[e + 1] − 1
  const int* choices;  // [T·k]: row r is choice choices[r], that of token choices[r] / k
};

/// The first two products of all experts and what is between them, in one launch.
void launch_expert_hidden(const ExpertRows& rows,
                          const bf16* x,       // [T, C]
                          const bf16* w_gate,  // [E, F, C]
                          const bf16* w_up,    // [E, F, C]
                          int C, int F,
                          bf16* hidden);  // [T·k, F]

/// The last product, in one launch. It writes the rows in the order of the choices, so that those
/// of a token are side by side.
void launch_expert_results(const ExpertRows& rows,
                           const float* weights,  // [T, k]
                           const bf16* hidden,    // [T·k, F]
                           const bf16* w_down,    // [E, C, F]
                           int C, int F,
                           float* results);  // [T·k, C]

/// The same two by products of a warpgroup. Throw std::runtime_error unless the GPU's compute
/// capability is 9.0.
void launch_expert_hidden_warpgroups(const ExpertRows& rows, const bf16* x, const bf16* w_gate,
                                     const bf16* w_up, int C, int F, bf16* hidden);
void launch_expert_results_warpgroups(const ExpertRows& rows, const float* weights,
                                      const bf16* hidden, const bf16* w_down, int C, int F,
                                      float* results);

/// Each token adds up its k results, in the order of its choices.
void launch_combine(const float* results,  // [T·k, C]
                    int T, int k, int C,
                    float* y);  // [T, C]

/// The checks of the functions above.
void expect_products(const ExpertRows& rows, int C, int F);
void expect_tensor(const char* name, const void* memory);

/// How many tiles of up to tile_rows rows, each of one expert, the rows can fill at most.
unsigned most_tiles(const ExpertRows& rows, int tile_rows);

}  // namespace t2t
