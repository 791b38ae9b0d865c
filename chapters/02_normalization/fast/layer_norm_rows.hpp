// LayerNorm as a model runs it: row by row, in vector registers. The tests compare it with the
// formula in layer_norm.hpp.
//
//   y[t,c] = gain[c] · (x[t,c] − mean) / sqrt(variance + eps) + bias[c]
//
// Mean and variance come from one pass over the row. Chapter 08's GPT-2 block calls it.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Allocates nothing. y may be x itself.
/// Throws as layer_norm does, and when y is not [T, C]; y is unchanged then.
void layer_norm_rows(ConstMatrix x,  // [T, C]
                     ConstRow gain,  // [C]
                     ConstRow bias,  // [C]
                     float eps,      //
                     Matrix y);      // [T, C]

}  // namespace t2t
