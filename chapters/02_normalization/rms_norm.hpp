// RMSNorm: divide each token's vector by its root mean square, then scale each channel.
//
//   y[t,c] = gain[c] · x[t,c] / sqrt(mean over c of x[t,c]² + eps)
//
// What LayerNorm does besides, taking the mean away and adding a bias, it leaves out. Zhang and
// Sennrich 2019, "Root Mean Square Layer Normalization". Chapter 08 puts one before attention and
// one before the feed-forward network.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// The formula as the paper writes it. Returns y [T, C].
/// Throws std::invalid_argument when gain is not [C], when eps is negative or not a number, and
/// when eps is 0 and a row's squares are too (0/0): the message names the row.
Tensor<2> rms_norm(const Tensor<2>& x,     // [T, C]
                   const Tensor<1>& gain,  // [C]
                   float eps = 1e-5f);     // holds a row of zeros finite

/// The same row by row, with no temporaries: what the later chapters call. y may be x itself.
/// Throws as rms_norm does, and when y is not [T, C]; y is untouched then.
void rms_norm_rows(ConstMatrix x,  // [T, C]
                   ConstRow gain,  // [C]
                   float eps,      //
                   Matrix y);      // [T, C]

}  // namespace t2t
