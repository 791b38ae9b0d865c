// RMSNorm: divide each token's vector by its root mean square, then scale each channel.
//
//   y[t,c] = gain[c] · x[t,c] / sqrt(mean over c of x[t,c]² + eps)
//
// Unlike LayerNorm it does not subtract the mean and has no bias. Zhang and Sennrich 2019, "Root
// Mean Square Layer Normalization". A LLaMA block (chapter 08) has one before attention and one
// before the feed-forward network.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula as the paper writes it. Returns y [T, C].
/// Throws std::invalid_argument when C is 0, when gain is not [C], when eps is negative or NaN, and
/// when eps is 0 and a row's mean square is 0 too, as a float, which would be x/0: the message
/// names the row. The square of a number above about 1.8e19 is infinite as a float; the row's
/// result is then 0.
Tensor<2> rms_norm(const Tensor<2>& x,     // [T, C]
                   const Tensor<1>& gain,  // [C]
                   float eps = 1e-5f);     // a row of zeros gives 0, not 0/0

/// The same row by row, which later chapters call. It allocates nothing. y may be x itself.
/// Throws as rms_norm does, and when y is not [T, C]; y is unchanged then.
void rms_norm_rows(ConstMatrix x,  // [T, C]
                   ConstRow gain,  // [C]
                   float eps,      //
                   Matrix y);      // [T, C]

}  // namespace t2t
