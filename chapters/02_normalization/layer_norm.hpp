// LayerNorm: move each token's vector to mean 0 and variance 1, then scale and shift each channel.
//
//   y[t,c] = gain[c] · (x[t,c] − mean) / sqrt(variance + eps) + bias[c]
//
// The variance is the biased one (divided by C, not C − 1) and eps stands inside the root:
// PyTorch's and GPT-2's convention, and each of the other three combinations is another function.
// Ba, Kiros and Hinton 2016, "Layer Normalization". rms_norm.hpp leaves the mean out. Chapter 08's
// GPT-2 block uses it.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula as the paper writes it. Returns y [T, C].
/// Throws std::invalid_argument when C is 0, when gain or bias is not [C], when eps is negative or
/// not a number, and when eps is 0 and a row has no spread (0/0): the message names the row.
Tensor<2> layer_norm(const Tensor<2>& x,     // [T, C]
                     const Tensor<1>& gain,  // [C]
                     const Tensor<1>& bias,  // [C]
                     float eps = 1e-5f);     // holds a row of equal numbers finite

/// The same row by row, with no temporaries: what the later chapters call. y may be x itself.
/// Throws as layer_norm does, and when y is not [T, C]; y is untouched then.
void layer_norm_rows(ConstMatrix x,  // [T, C]
                     ConstRow gain,  // [C]
                     ConstRow bias,  // [C]
                     float eps,      //
                     Matrix y);      // [T, C]

}  // namespace t2t
