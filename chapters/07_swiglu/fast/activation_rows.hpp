// Activations as a model runs them: row by row, in vector registers, without temporary tensors. The
// tests compare them with the formulas in activations.hpp. feed_forward_rows.hpp calls them.
#pragma once

#include "07_swiglu/activations.hpp"
#include "tensor.hpp"

namespace t2t {

/// Written to y, which may be x, gate or up itself. Throws as the formulas do, and when y has
/// another shape than x or gate.
void activate_rows(Activation activation,
                   ConstMatrix x,  // [T, F]
                   Matrix y);      // [T, F]
void gated_rows(Activation activation,
                ConstMatrix gate,  // [T, F]
                ConstMatrix up,    // [T, F]
                Matrix y);         // [T, F]

}  // namespace t2t
