// The transformer block: attention, then a feed-forward network, each adding to what flows past.
//
//   pre-norm    x ← x + attention(norm(x))      x ← x + feed_forward(norm(x))
//   post-norm   x ← norm(x + attention(x))      x ← norm(x + feed_forward(x))
//
// It only puts chapters 02 to 07 together; of its own it has the two sums. Vaswani et al. 2017
// (post-norm); Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture"
// (pre-norm). Here is the formula: one text, all at once, nothing kept. block_rows.hpp has what a
// model calls.
#pragma once

#include "08_block/block_weights.hpp"
#include "tensor.hpp"

namespace t2t {

/// The new x, [T, C], of tokens at positions 0 … T − 1. Throws std::invalid_argument as
/// expect_settings, expect_weights and rope do, when x is not [T, C], and when F is 0: the formula
/// knows no other network.
Tensor<2> block(const Tensor<2>& x,  // [T, C]
                const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table);  // [S, D/2] each; not read when nothing is turned

}  // namespace t2t
