// RMSNorm: divide each token's vector by its root mean square, then scale each channel.
//
//   y[t,c] = gain[c] · x[t,c] / sqrt(mean over c of x[t,c]² + eps)
//
// Unlike LayerNorm it does not subtract the mean and has no bias. Zhang and Sennrich 2019, "Root
// Mean Square Layer Normalization". A LLaMA block (chapter 08) has one before attention and one
// before the feed-forward network. fast/rms_norm_rows.hpp is the form that a model runs.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Throws std::invalid_argument when C is 0, when eps is negative or NaN, and when eps is 0 and a
/// row's mean square, as a float, is 0 as well, which would give x/0; the message names the row.
void expect_mean_squares(ConstMatrix x,  // [T, C]
                         float eps);

/// The formula as the paper writes it. Returns y [T, C].
/// Throws std::invalid_argument when gain is not [C], and as expect_mean_squares does. The square
/// of an element above about 1.8e19 is infinite as a float; the row's result is then 0.
Tensor<2> rms_norm(const Tensor<2>& x,     // [T, C]
                   const Tensor<1>& gain,  // [C]
                   float eps = 1e-5f);     // a row of zeros gives 0, not 0/0

}  // namespace t2t
