// The same recurrences a chunk of c tokens at a time, in matrix products. With the chunk's rows Q,
// K, V, β, its running sums G, its decays Γ, and S₀, the state before it:
//
//   A_ij = β_i·Γ_ij·(k_i·k_j) for j < i           X = V − e^G ⊙ (K·S₀)
//   (I + A)·U = β ⊙ X                             without the error term: U = V
//   O = e^G ⊙ (Q·S₀) + ((Q·Kᵀ) ⊙ Γ)·U
//   S = e^(G_c)·S₀ + (h ⊙ K)ᵀ·U                   h_i = e^(G_c − G_i)
//
// It follows from writing u_i of delta_rule.hpp with the state of step i spelled out. No inverse is
// needed. Yang et al. 2024, "Parallelizing Linear Transformers with the Delta Rule" and "Gated
// Delta Networks". backward/chunks_backward.hpp goes back through it.
#pragma once

#include "24_delta_rule/delta_rule.hpp"
#include "tensor.hpp"

namespace t2t {

/// Each row of x times its factor. (As an xtensor expression that repeats a column, the same would
/// take several times as long for such small matrices.)
Tensor<2> rows_times(const Tensor<1>& factors, Tensor<2> x);  // [c], [c, C]

/// What one chunk computes on its way.
struct DeltaChunk {
  Tensor<2> q, k;        // [c, D]
  Tensor<1> sums;        // [c], G
  Tensor<2> decays;      // [c, c], Γ
  Tensor<2> kk;          // [c, c], K·Kᵀ
  Tensor<2> a;           // [c, c], strictly lower
  Tensor<2> from_state;  // [c, Dv], K·S₀
  Tensor<2> x;           // [c, Dv]
  Tensor<2> u;           // [c, Dv]
  Tensor<2> p;           // [c, c], (Q·Kᵀ) ⊙ Γ

  float last() const { return sums(sums.size() - 1); }  // G_c
};

/// The `count` tokens from `first` on, over a state. Checks nothing.
DeltaChunk delta_chunk(const DeltaTokens& tokens, StateRule rule, std::size_t first,
                       std::size_t count,
                       const Tensor<2>& state);  // [D, Dv], S₀

/// e^(G_c)·S₀ + (h ⊙ K)ᵀ·U.
Tensor<2> state_after(const DeltaChunk& chunk, const Tensor<2>& state);  // [D, Dv]

/// All tokens, `chunk` at a time: what delta_recurrence computes, up to rounding, the state
/// included. The last chunk may be shorter. Throws std::invalid_argument when chunk is 0, and as
/// expect_delta does.
Tensor<2> delta_chunks(const DeltaTokens& tokens, StateRule rule, std::size_t chunk,
                       Tensor<2>& state);  // [D, Dv]

}  // namespace t2t
