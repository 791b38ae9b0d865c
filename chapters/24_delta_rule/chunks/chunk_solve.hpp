// What a chunk of c tokens needs besides matrix products: its decays, and a triangular solve.
//
//   G_i = g_1 + … + g_i        Γ_ij = e^(G_i − G_j) for j ≤ i, and 0 for j > i
//   (I + A)·U = X              A is strictly lower triangular: u_i = x_i − Σ over j < i of A_ij·u_j
//
// The exponent is masked before exp: for j > i it is positive, and e^(G_i − G_j) may overflow. It
// is never factored as e^(G_i)·e^(−G_j) either, since 64 steps of g = −2 make e^(−G_j) overflow.
// delta_chunks.hpp and backward/chunks_backward.hpp call these.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// G, the running sums of g: [c].
Tensor<1> running_sums(ConstRow g);  // [c]

/// Γ, from the running sums: [c, c].
Tensor<2> chunk_decays(const Tensor<1>& sums);  // [c]

/// U of (I + A)·U = X, by forward substitution: [c, Dv]. Of A, only what lies below the diagonal is
/// read. Throws std::invalid_argument when shapes disagree.
Tensor<2> solve_lower(const Tensor<2>& a,   // [c, c]
                      const Tensor<2>& x);  // [c, Dv]

/// U of (I + A)ᵀ·U = X, by back substitution, as the backward pass needs it. Throws as solve_lower.
Tensor<2> solve_lower_transposed(const Tensor<2>& a,   // [c, c]
                                 const Tensor<2>& x);  // [c, Dv]

}  // namespace t2t
