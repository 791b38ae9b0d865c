// What the forward pass of a block keeps for its backward pass.
//
// Kept are the inputs of what is not linear: the stream, the rotated queries and keys, the values,
// gate and up. The norms' results and the network's hidden numbers are made again from them, which
// takes less time than it would take memory: 2·C + F numbers a token and layer. Chapter 09's
// training_memory counts them as kept.
#pragma once

#include <vector>

#include "08_block/fast/block_rows.hpp"
#include "tensor.hpp"

namespace t2t {

struct KeptBlock {
  Tensor<2> x;                    // [N, C]    the stream before the block
  Tensor<2> q;                    // [N, H·D]  rotated, as k
  Tensor<2> k;                    // [N, G·D]
  Tensor<2> v;                    // [N, G·D]
  Tensor<2> heads;                // [N, H·D]
  Tensor<2> x_plus_attention;     // [N, C]    in post-norm before its norm
  Tensor<2> gate;                 // [N, F]    gated networks only
  Tensor<2> up;                   // [N, F]
  Tensor<2> x_plus_feed_forward;  // [N, C]    post-norm only, before its norm
};

/// Room for N rows of each block. Where a slot has the network, nothing is kept of it here.
std::vector<KeptBlock> make_kept(std::span<const BlockSettings> layers, std::size_t N,
                                 bool own_network = true);

/// The trace that copies a block's parts into its KeptBlock: all but x, which comes before it.
Trace keep_in(std::vector<KeptBlock>& kept);

/// Bytes of storage.
std::size_t bytes(const std::vector<KeptBlock>& kept);

}  // namespace t2t
