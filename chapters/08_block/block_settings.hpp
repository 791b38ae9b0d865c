// A block's sizes and choices: everything about it but the numbers that it learns.
//
//   LLaMA's choices    RMSNorm, RoPE, a gated feed-forward network, no biases
//   Qwen's choices     LLaMA's, with biases of q, k and v (2) or norms of q's and k's heads (3)
//   GPT-2's choices    LayerNorm, positions added before the first block, a plain network, biases
//
// Touvron et al. 2023, "LLaMA"; Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners". Both put the norm before each part. Chapter 09 gives every block of a model the same
// settings, or each its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "03_rope/rope.hpp"
#include "07_swiglu/activations.hpp"
#include "08_block/norm.hpp"

namespace t2t {

/// before: x + part(norm(x)), "pre-norm".  after: norm(x + part(x)), "post-norm".
enum class NormPlace { before, after };

/// Which products of a block have a vector added: none in LLaMA, all in GPT-2, those that make q, k
/// and v in Qwen 2.
enum class Biases { none, qkv, all };

struct BlockSettings {
  std::size_t C;  // width of the residual stream
  std::size_t H;  // query heads
  std::size_t G;  // key and value heads; divides H
  std::size_t D;  // width of a head; often C / H
  std::size_t F;  // width of the feed-forward network; 0: the caller's network stands in its place

  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  bool head_norms = false;  // whether each head of q and k has a norm of its own, before RoPE
  Activation activation = Activation::swiglu;
  Biases biases = Biases::none;  // all: of q, k, v, o and both matrices of a plain network
  std::size_t window = 0;        // keys that a query sees, its own the last; 0: all up to its own
  bool uses_rope = true;         // whether q and k are turned; if not, x already knows positions
  Pairing pairing = Pairing::neighbours;
  float theta = 10000;           // RoPE's
  Frequencies frequencies = {};  // RoPE's where they are scaled, [D/2]; empty: θ^(−2i/D)
  float eps = 1e-5f;             // the norms'
};

/// D = C / H. Throws std::invalid_argument when H does not divide C.
BlockSettings llama_style(std::size_t C, std::size_t H, std::size_t G, std::size_t F);
BlockSettings gpt2_style(std::size_t C, std::size_t H);  // G = H, F = 4C, gelu_tanh

/// Why no block can have these sizes or choices, each reason with what was wanted and got, with
/// "; " between them: a G that does not divide H, an odd D under RoPE, an eps not above 0 … Empty
/// when one can.
std::string reasons_against(const BlockSettings& settings);
/// Throws std::invalid_argument with these reasons, if there are any.
void expect_settings(const BlockSettings& settings);

/// The largest that size(settings) is in any layer.
template <class Size>
std::size_t widest(std::span<const BlockSettings> layers, Size size) {
  std::size_t most = 0;
  for (const BlockSettings& settings : layers) most = std::max(most, size(settings));
  return most;
}

/// RoPE's table for these settings, for positions 0 … S − 1; empty when nothing is turned.
RopeTable block_rope_table(const BlockSettings& settings, std::size_t S);

}  // namespace t2t
