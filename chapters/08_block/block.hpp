// The transformer block: attention, then a feed-forward network. Each adds its result to the
// stream.
//
//   pre-norm    x ← x + attention(norm(x))      x ← x + feed_forward(norm(x))
//   post-norm   x ← norm(x + attention(x))      x ← norm(x + feed_forward(x))
//   both        x ← x + norm(attention(norm(x)))   x ← x + norm(feed_forward(norm(x)))
//
// Only the two residual connections are new; everything else comes from chapters 02 to 07. Vaswani
// et al. 2017 (post-norm); Xiong et al. 2020, "On Layer Normalization in the Transformer
// Architecture" (both compared). This file contains the reference implementation, written as the
// papers' formula; it computes all tokens of one sequence at once and keeps nothing. A model calls
// block_rows.hpp instead. expect_settings is declared in block_settings.hpp, expect_weights in
// block_weights.hpp; both forms of the block call them.
#pragma once

#include <functional>

#include "08_block/block_weights.hpp"
#include "tensor.hpp"

namespace t2t {

/// Another feed-forward network in the place of chapter 07's, for the reference: what it adds to
/// the stream, [T, C].
using ReferenceNetwork = std::function<Tensor<2>(const Tensor<2>& x, const BlockWeights& weights,
                                                 const BlockSettings& settings)>;

/// Returns the new x, [T, C], of tokens at positions 0 to T − 1. Throws std::invalid_argument as
/// expect_settings, expect_weights and rope do, when x does not have C columns or has no row, and
/// if `network` is empty while F is 0 or the block has experts.
Tensor<2> block(const Tensor<2>& x,  // [T, C]
                const BlockWeights& weights, const BlockSettings& settings,
                const RopeTable& table,  // [S, D/2] each, S at least T; not read without RoPE
                const ReferenceNetwork& network = {});

}  // namespace t2t
