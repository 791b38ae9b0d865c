// What a block is made of: sizes and choices (BlockSettings), and its tensors by name.
//
//   LLaMA's choices    RMSNorm, RoPE, a gated feed-forward network, no biases
//   GPT-2's choices    LayerNorm, positions added before the first block, a plain network, biases
//
// Touvron et al. 2023, "LLaMA"; Radford et al. 2019, "Language Models are Unsupervised Multitask
// Learners". Both put the norm before each part. Chapter 09 stacks blocks, 10 loads weights into
// them. No dropout (13), no mixture of experts (14).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "03_rope/rope.hpp"
#include "07_swiglu/feed_forward.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

enum class Norm { rms, layer };
/// before: x + part(norm(x)), "pre-norm".  after: norm(x + part(x)), "post-norm".
enum class NormPlace { before, after };

struct BlockSettings {
  std::size_t C;  // width of the residual stream
  std::size_t H;  // query heads
  std::size_t G;  // key and value heads; divides H
  std::size_t D;  // width of a head; often C / H
  std::size_t F;  // width of the feed-forward network

  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  Activation activation = Activation::swiglu;
  bool biases = false;  // on the four projections, and on both matrices of a plain network
  bool turned = true;   // whether q and k are turned by RoPE; if not, x already knows positions
  Pairing pairing = Pairing::neighbours;
  float theta = 10000;  // RoPE's
  float eps = 1e-5f;    // the norms'
};

/// D = C / H. Throws std::invalid_argument when H does not divide C.
BlockSettings llama_style(std::size_t C, std::size_t H, std::size_t G, std::size_t F);
BlockSettings gpt2_style(std::size_t C, std::size_t H);  // G = H, F = 4C, gelu_tanh

/// Throws std::invalid_argument, with what was wanted and got, for sizes or choices that no block
/// can have: G that does not divide H, F of 0, D odd under RoPE, eps not above 0 …
void expect_settings(const BlockSettings& settings);

/// RoPE's table for these settings, for positions 0 … S − 1; empty when nothing is turned.
RopeTable block_rope_table(const BlockSettings& settings, std::size_t S);

struct NormWeights {
  Tensor<1> gain;  // [C]
  Tensor<1> bias;  // [C], LayerNorm only
};

/// Read from the top: it is the block's diagram. x [T, C] flows past; each part reads x and adds
/// to it. What the settings leave out stays empty.
struct BlockWeights {
  NormWeights attention_norm;  // [C]

  Tensor<2> w_q;  // [H·D, C]    what a token asks
  Tensor<2> w_k;  // [G·D, C]    what it is found by
  Tensor<2> w_v;  // [G·D, C]    what it says
  Tensor<1> b_q;  // [H·D]       biases: GPT-2's, else empty
  Tensor<1> b_k;  // [G·D]
  Tensor<1> b_v;  // [G·D]

  Tensor<2> w_o;  // [C, H·D]    the heads' answers, added to x
  Tensor<1> b_o;  // [C]

  NormWeights feed_forward_norm;  // [C]

  FeedForwardWeights feed_forward;  // w_gate, w_up [F, C], w_down [C, F], added to x
};

/// Throws std::invalid_argument, naming the tensor and both shapes, unless each one fits.
void expect_weights(const BlockWeights& weights, const BlockSettings& settings);

/// Gains 1, biases 0, matrices from N(0, 1/inputs), so that numbers of size 1 give such again; what
/// is added to the stream (w_o, w_down) times residual_scale. Throws as expect_settings does.
BlockWeights block_weights(const BlockSettings& settings, Random& random,
                           float residual_scale = 1);  // GPT-2 takes 1/√(2·L)

/// Numbers in all its tensors: gains, biases, matrices.
std::size_t parameter_count(const BlockWeights& weights);

/// One part's share of a block: numbers to keep, and multiplications and additions to do.
struct PartCost {
  std::string name;
  std::size_t parameters;
  double flops;  // of its matrix products
};
/// For T tokens, the last of S positions; each query counts the keys that it sees. Throws as
/// expect_settings does, or when T is 0 or above S.
std::vector<PartCost> block_costs(const BlockSettings& settings, std::size_t T, std::size_t S);

}  // namespace t2t
