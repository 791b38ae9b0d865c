// Small kernels, one for each thing that a Hopper GPU does beside the threads of a block.
#pragma once

#include <vector>

#include "cuda/tensor_map.hpp"

namespace t2t {

/// A box of a tensor [B, T, heads, D], loaded and stored again.
struct CopiedBox {
  std::vector<bf16> tile;    // shared memory as the copy left it
  std::vector<bf16> tensor;  // like x; zeros where nothing was stored
};
/// The box of box_tokens tokens from `token` on.
CopiedBox copied_box(const std::vector<bf16>& x, HeadRows shape, int token, int head, int sequence);

/// The sums of the channels of [T, 64] over all tokens: one warp copies 16 tokens at a time into a
/// ring of two tiles, two warps add.
std::vector<float> ring_sums(const std::vector<bf16>& x, int T);

/// What a warpgroup multiplies, for q [64, D] and k [keys, D], with D and keys 64 or 128.
struct Products {
  std::vector<float> scores;  // q·kᵀ, [64, keys]
  std::vector<float> means;   // (q·kᵀ)·k, [64, D], with the scores in registers as bf16
};
Products products(const std::vector<bf16>& q, const std::vector<bf16>& k, int D, int keys);

/// On the stand-in: a lane's first sum between a product's issue and the wait for it, and a tile's
/// first element while its copy is on its way. On a GPU either may be anything.
std::vector<float> read_too_early();

/// Three warpgroups, of which the first gives its registers to the others: 1 from each thread.
std::vector<int> shared_registers();

/// 64 numbers, written by one warp, which goes on at once, and read by another one.
std::vector<int> handed_over();

}  // namespace t2t
