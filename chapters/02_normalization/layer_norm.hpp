// LayerNorm: move each token's vector to mean 0 and variance 1, then scale and shift each channel.
//
//   y[t,c] = gain[c] · (x[t,c] − mean) / sqrt(variance + eps) + bias[c]
//
// The variance is divided by C, not C − 1, and eps is added inside the root, as PyTorch and GPT-2
// do. Ba, Kiros and Hinton 2016, "Layer Normalization". A GPT-2 block (chapter 08) has one before
// attention and one before the feed-forward network. fast/layer_norm_rows.hpp is the form that a
// model runs.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument when C is 0, when eps is negative or NaN, and when eps is 0 and a
/// row's variance, as a float, is 0 as well, which would give 0/0. This is so for a row of equal
/// elements; the message names the row.
void expect_variances(ConstMatrix x,  // [T, C]
                      float eps);

/// The formula as the paper writes it. Returns y [T, C].
/// Throws std::invalid_argument when gain or bias is not [C], and as expect_variances does.
Tensor<2> layer_norm(const Tensor<2>& x,     // [T, C]
                     const Tensor<1>& gain,  // [C]
                     const Tensor<1>& bias,  // [C]
                     float eps = 1e-5f);     // a row of equal elements gives the bias, not 0/0

}  // namespace t2t
