// A causal convolution of W tokens for each channel by itself, followed by SiLU: what the layer's
// queries, keys and values go through, so that a token also sees its neighbours.
//
//   y[t, c] = silu(Σ over j < W of w[c, j]·x[t − (W − 1) + j, c])      silu(z) = z / (1 + e^(−z))
//
// Before the text's first token x is 0. The last W − 1 rows of x are kept for the next call:
// without them, a text in two calls would get other results than in one. Yang et al. 2024, "Gated
// Delta Networks", take W = 4.
#pragma once

#include "tensor.hpp"

namespace t2t {

/// Returns [T, channels]; `kept` becomes the last W − 1 rows before the next call's. Throws
/// std::invalid_argument when shapes disagree or W is 0.
Tensor<2> short_convolution(const Tensor<2>& x,  // [T, channels]
                            const Tensor<2>& w,  // [channels, W], the newest token last
                            Tensor<2>& kept);    // [W − 1, channels]

}  // namespace t2t
