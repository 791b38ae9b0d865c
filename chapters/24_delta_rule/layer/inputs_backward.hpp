// The backward passes of what the layer's projections go through before the rule.
//
//   unit length     ŷ = r·x, r = 1/√(Σ x² + eps)         dx = r·(dy − ŷ·(ŷ·dy))
//   convolution     s[t] = Σ over j of w[j]·x[t − (W − 1) + j],  y = silu(s)
//                   ds = dy·σ(s)·(1 + s·(1 − σ(s)))
//                   dw[j] = Σ over t of ds[t]·x[t − (W − 1) + j]
//                   dx[t − (W − 1) + j] = Σ over j of w[j]·ds[t]
//
// A longer row has the same direction, and a gradient of the direction may therefore not point
// along the row: the second term of the first line removes that part. A convolution that reads
// earlier tokens sends its gradients to earlier tokens. Both recompute what the forward pass did
// not keep.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The gradient of delta_rule.hpp's unit_rows, [T, D]. Throws std::invalid_argument when dy has
/// another shape, and unless eps is above 0.
Tensor<2> unit_rows_backward(ConstMatrix x,   // [T, D]
                             ConstMatrix dy,  // [T, D]
                             float eps = 1e-6f);

/// The gradient of short_convolution's x, [T, channels], for a text from its first token on. Adds
/// to dw. Throws std::invalid_argument when shapes disagree or W is 0.
Tensor<2> short_convolution_backward(const Tensor<2>& x,   // [T, channels]
                                     const Tensor<2>& w,   // [channels, W]
                                     const Tensor<2>& dy,  // [T, channels]
                                     Tensor<2>& dw);       // [channels, W]

}  // namespace t2t
