// The backward pass of chunks/delta_chunks.hpp, chunk by chunk from the end, in matrix products and
// one back substitution. With M = I + A, P = (Q·Kᵀ) ⊙ Γ and dS the gradient of the state after the
// chunk:
//
//   dU = Pᵀ·dO + (h ⊙ K)·dS         dR = M⁻ᵀ·dU          dV = dX = β ⊙ dR
//   dA = −strictly lower(dR·Uᵀ)     dP = dO·Uᵀ           E = β ⊙ dA ⊙ Γ
//   dβ = rows of dR ⊙ X, added up, + rows of dA ⊙ Γ ⊙ (K·Kᵀ), added up
//   dQ = e^G ⊙ (dO·S₀ᵀ) + (dP ⊙ Γ)·K
//   dK = −(e^G ⊙ dX)·S₀ᵀ + (dP ⊙ Γ)ᵀ·Q + (E + Eᵀ)·K + h ⊙ (U·dSᵀ)
//   dS₀ = e^(G_c)·dS − Kᵀ·(e^G ⊙ dX) + Qᵀ·(e^G ⊙ dO)
//   dG  from Z = dP ⊙ P + E ⊙ (K·Kᵀ), from both e^G, from h and from e^(G_c); dg = sums from the
//   end
//
// Without the error term, U = V: dV = dU, and all terms with dX, A or E are gone. It keeps one
// state per chunk instead of one per token.
#pragma once

#include "24_delta_rule/backward/delta_backward.hpp"

namespace t2t {

/// The gradients of delta_chunks: those of delta_backward, up to rounding. Throws
/// std::invalid_argument when chunk is 0, and as expect_delta_backward does.
DeltaGradients delta_chunks_backward(const DeltaTokens& tokens, StateRule rule, std::size_t chunk,
                                     const Tensor<2>& state,    // [D, Dv], before the first token
                                     const Tensor<2>& dout,     // [T, Dv]
                                     const Tensor<2>& dstate);  // [D, Dv], of the last state

}  // namespace t2t
