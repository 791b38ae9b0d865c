// Linear attention as it was first proposed: softmax's e^(q·k) is replaced by φ(q)·φ(k), and the
// weights are divided by their sum.
//
//   out_t = (Σ over s ≤ t of (φ(q_t)·φ(k_s))·v_s) / (Σ over s ≤ t of φ(q_t)·φ(k_s))
//         = Sᵀ·φ(q) / (z·φ(q))       S += φ(k)·vᵀ       z += φ(k)       φ(x) = elu(x) + 1
//
// Both sums are a state, since φ(q) can be moved out of them. Katharopoulos et al. 2020,
// "Transformers are RNNs". Later models leave out the denominator and norm the output instead
// (delta_rule.hpp, layer/); no other chapter uses this one.
#pragma once

#include "tensor.hpp"

namespace t2t {

struct NormalizedState {
  Tensor<2> values;  // [D, Dv], S
  Tensor<1> total;   // [D], z
};
NormalizedState normalized_state(std::size_t D, std::size_t Dv);  // zeros

/// T tokens over a state, which becomes what later tokens need. Returns [T, Dv]. Throws
/// std::invalid_argument when shapes disagree.
Tensor<2> normalized_linear(const Tensor<2>& q,  // [T, D]
                            const Tensor<2>& k,  // [T, D]
                            const Tensor<2>& v,  // [T, Dv]
                            NormalizedState& state);

}  // namespace t2t
