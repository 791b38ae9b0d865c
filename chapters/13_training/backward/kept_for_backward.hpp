// What the forward pass of a block saves for its backward pass.
//
// It saves the inputs of nonlinear functions: the stream, the rotated queries and keys, the values,
// gate and up. The norms' results and the hidden channels are recomputed from them, which costs
// little time and saves much memory: 2·C + F elements per token and layer. Chapter 09's
// training_memory counts them as saved.
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

/// Room for N rows of each block. Of a network that the caller supplies, nothing is saved
/// here.
std::vector<KeptBlock> make_kept(std::span<const BlockSettings> layers, std::size_t N,
                                 bool own_network = true);

/// The trace that copies a block's intermediate results: all but x, which comes before it.
Trace keep_in(KeptBlock& kept);

/// Bytes of storage.
std::size_t bytes(const std::vector<KeptBlock>& kept);

}  // namespace t2t
