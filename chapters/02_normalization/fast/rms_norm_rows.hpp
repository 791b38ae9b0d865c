// RMSNorm as a model runs it: row by row, in vector registers. The tests compare it with the
// formula in rms_norm.hpp.
//
//   y[t,c] = gain[c] · x[t,c] / sqrt(mean over c of x[t,c]² + eps)
//
// Chapter 08's block calls it; chapter 11 implements it on a GPU.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Allocates nothing. y may be x itself.
/// Throws as rms_norm does, and when y is not [T, C]; y is unchanged then.
void rms_norm_rows(ConstMatrix x,  // [T, C]
                   ConstRow gain,  // [C]
                   float eps,      //
                   Matrix y);      // [T, C]

}  // namespace t2t
