// A block's sizes and choices: everything about it except its learned parameters.
//
//   LLaMA's choices    RMSNorm, RoPE, a gated feed-forward network, no biases
//   Qwen's choices     LLaMA's, with biases of q, k and v (Qwen 2) or QK-norm (Qwen 3)
//   Gemma's choices    norms around each sublayer, soft-capped scores (Gemma 2), a feed-forward
//                      network gated by GELU
//   GPT-2's choices    LayerNorm, positions added before the first block, a feed-forward network
//                      without a gate, biases
//
// Touvron et al. 2023, "LLaMA"; Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners". Both models put the norm before each sublayer. Chapter 09 gives all blocks of a model
// the same settings, or each block its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "03_rope/rope.hpp"
#include "04_causal_attention/fast/score_rule.hpp"
#include "07_swiglu/activations.hpp"
#include "08_block/norm.hpp"

namespace t2t {

// [settings]
/// before: x + sublayer(norm(x)), "pre-norm".  after: norm(x + sublayer(x)), "post-norm".
/// both: x + norm(sublayer(norm(x))), with a gain for each norm (Gemma 2 and 3).
enum class NormPlace { before, after, both };

/// Which matrix products of a block have a bias: none in LLaMA, all in GPT-2, those that make q, k
/// and v in Qwen 2.
enum class Biases { none, qkv, all };

struct BlockSettings {
  std::size_t C;  // width of the residual stream
  std::size_t H;  // query heads
  std::size_t G;  // key and value heads; divides H
  std::size_t D;  // width of a head; often C / H
  std::size_t F;  // width of the feed-forward network; 0 only if the caller supplies its own

  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  Activation activation = Activation::swiglu;
  Biases biases = Biases::none;  // all: of q, k, v, o and a feed-forward network without a gate
  bool uses_rope = true;  // whether q and k are rotated; if not, x already holds the positions
  float theta = 10000;    // RoPE's
  float eps = 1e-5f;      // the norms'
  // [/settings]

  // For models of later chapters. With these defaults they change nothing.
  Pairing pairing = Pairing::neighbours;  // RoPE's
  Frequencies frequencies = {};  // RoPE's where they are scaled, [D/2]; empty: θ^(−2i/D)
  std::size_t window = 0;        // keys that a query sees, the last of them its own; 0: no limit
  bool head_norms = false;       // QK-norm: each head of q and k goes through a norm before RoPE
  bool heads_together = false;   // QK-norm: one norm over all heads of q, one over all of k (OLMoE)
  float score_scale = 0;         // the scale of q·k (softmax_scale); 0: 1/√D
  /// Soft cap (attn_logit_softcapping): scores stay between −cap and cap; 0: none (chapter 04's
  /// ScoreRule).
  float score_cap = 0;
  std::size_t experts = 0;  // E feed-forward networks, of which each token uses some; 0: just one
  std::size_t chosen = 0;   // top-k: how many experts each token uses (num_experts_per_tok)
  bool normalized = true;   // whether the weights of a token's experts add up to 1 (norm_topk_prob)
  std::size_t shared = 0;   // F of the shared expert (shared_expert_intermediate_size); 0: none
  bool shared_gate = false;  // whether the shared expert's result is multiplied by a gate
};

/// LLaMA's choices, with D = C / H. Throws std::invalid_argument when H does not divide C.
/// gpt2_style has GPT-2's: G = H, F = 4C, LayerNorm, gelu_tanh, all biases, no RoPE.
BlockSettings llama_style(std::size_t C, std::size_t H, std::size_t G, std::size_t F);
BlockSettings gpt2_style(std::size_t C, std::size_t H);

/// What is wrong with these settings: all errors, joined by "; ", each with the value wanted and
/// the value given. Empty if the settings are valid. The errors are: C, H, G or D is 0; G does not
/// divide H; D is odd and RoPE is used; theta, eps or one of the frequencies is not a finite number
/// above 0; there are frequencies, but not D/2 of them; biases are `all` and the activation is
/// gated; with experts, chosen is not from 1 to E; without experts, chosen is not 0; experts have
/// F = 0; there is a shared expert without experts, or a gate without it; heads_together without
/// head_norms; score_scale or score_cap is not 0 or a finite number above 0.
std::string setting_errors(const BlockSettings& settings);
/// Throws std::invalid_argument with these errors when there are any.
void expect_settings(const BlockSettings& settings);

/// The largest size(settings) of all layers.
template <class Size>
std::size_t widest(std::span<const BlockSettings> layers, Size size) {
  std::size_t most = 0;
  for (const BlockSettings& settings : layers) most = std::max(most, size(settings));
  return most;
}

/// How the block turns products q·k into scores, for chapter 04's kernels: under a causal mask,
/// with the window, the scale and the soft cap of the settings.
ScoreRule rule_of(const BlockSettings& settings);

/// RoPE's table for positions 0 to S − 1; empty when the settings use no RoPE. Throws as
/// expect_settings and rope_table do.
RopeTable block_rope_table(const BlockSettings& settings, std::size_t S);

}  // namespace t2t
