// Linear attention and the gated delta rule as a recurrence: a state of fixed size in the place of
// keys and values. For one head, with S [D, Dv] and each token's q, k, v, g and β:
//
//   S′ = e^g·S                         the state fades; g is at most 0
//   u  = v                             StateRule::add: linear attention, gated if g is below 0
//   u  = β·(v − S′ᵀ·k)                 StateRule::correct: what the state lacks of v at k
//   S  = S′ + k·uᵀ        o = Sᵀ·q
//
// With a key of length 1 and β = 1, reading k after writing it gives v exactly. The decay comes
// before the error. chunks/delta_chunks.hpp computes the same in matrix products; layer/ makes the
// inputs from x, and channels/ gives each channel a decay. Katharopoulos et al. 2020 (linear);
// Schlag et al. 2021 (delta); Yang et al. 2024, "Gated Delta Networks". Not here: fused kernels.
#pragma once

#include <cstddef>

#include "tensor.hpp"

namespace t2t {

enum class StateRule { add, correct };

/// What one head reads of T tokens.
struct DeltaTokens {
  Tensor<2> q;     // [T, D]
  Tensor<2> k;     // [T, D], of length 1 under StateRule::correct
  Tensor<2> v;     // [T, Dv]
  Tensor<1> g;     // [T], the logarithm of the decay, at most 0
  Tensor<1> beta;  // [T], from 0 to 1; StateRule::add does not read it

  std::size_t T() const { return q.shape(0); }
  std::size_t D() const { return q.shape(1); }
  std::size_t Dv() const { return v.shape(1); }
};

/// Throws std::invalid_argument, naming the value and the token, when shapes disagree or a width is
/// 0, for g above 0 or NaN, and under StateRule::correct for β outside 0 … 1 and for β·|k|² above
/// 2, with which the state grows without bound.
void expect_delta(const DeltaTokens& tokens, StateRule rule, ConstMatrix state);  // [D, Dv]

/// One token: changes the state, and writes u and o. Checks nothing, so that loops may call it.
void delta_step(ConstRow q, ConstRow k,  // [D]
                ConstRow v,              // [Dv]
                float g, float beta, StateRule rule,
                Matrix state,  // [D, Dv]
                Row u,         // [Dv]
                Row out);      // [Dv]

/// All tokens, one after the other: o, [T, Dv]. The state is what earlier tokens left, zeros for
/// none, and becomes what later ones need: a text in two calls gets what it gets in one. Throws as
/// expect_delta does, before the state is changed.
Tensor<2> delta_recurrence(const DeltaTokens& tokens, StateRule rule,
                           Tensor<2>& state);  // [D, Dv]

/// Rows of length 1: each divided by √(Σ x² + eps). Throws std::invalid_argument unless eps is
/// above 0, since a row of zeros would give 0/0.
Tensor<2> unit_rows(ConstMatrix x,  // [T, D]
                    float eps = 1e-6f);

}  // namespace t2t
