// Newton–Schulz iteration: brings the singular values of a matrix near 1, by matrix products alone.
//
//   X ← G / ‖G‖_F, then five times:   A = X·Xᵀ    X ← a·X + (b·A + c·A²)·X
//
// Every matrix is G = U·S·Vᵀ: it rotates by Vᵀ, stretches by the singular values in S, and rotates
// by U. A step keeps U and V, and maps each singular value s to f(s) = a·s + b·s³ + c·s⁵. It does
// not converge: with these a, b and c, f(1) is 0.7, and the values stay in a band around 1 instead.
// muon.hpp moves weights along the result. Jordan et al. 2024, "Muon: An optimizer for hidden
// layers in neural networks".
#pragma once

#include <cstddef>

#include "tensor.hpp"

namespace t2t {

struct NewtonSchulz {
  float a = 3.4445f, b = -4.7750f, c = 2.0315f;  // f(s) = a·s + b·s³ + c·s⁵
  std::size_t steps = 5;
};

/// The singular value that one step makes of s: f(s).
double singular_value_after(const NewtonSchulz& iteration, double s);

/// One step. It costs 4·m²·n + 2·m³ operations for X [m, n]; a wide X is cheaper than its
/// transpose.
Tensor<2> newton_schulz_step(const NewtonSchulz& iteration,
                             const Tensor<2>& x);  // [m, n]

/// All steps, from g divided by the root of the sum of its squares. A singular value of g that is
/// at least a hundredth of this root becomes 0.68 to 1.135, and a smaller one at most 1.203. The
/// factor of g does not matter: c·g gives the same result, for any c above 0. A g of zeros stays
/// zeros. Throws std::invalid_argument when g has no element, or one that is not finite.
Tensor<2> newton_schulz(const Tensor<2>& g,  // [out, in]
                        const NewtonSchulz& iteration = {});

}  // namespace t2t
