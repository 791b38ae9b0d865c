// An encoder-decoder: one stack of blocks reads a source text, a second one writes a target text.
//
//   encoder   x ← x + attention(norm(x))            no mask: each token sees the whole source
//             x ← x + network(norm(x))
//   decoder   y ← y + attention(norm(y))            causal: each token sees those up to itself
//             y ← y + attention(norm(y), encoded)   cross: keys and values of the source
//             y ← y + network(norm(y))
//
// Vaswani et al. 2017, "Attention Is All You Need"; the norm stands before each sublayer and is an
// RMSNorm, as in Raffel et al. 2019, "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer" (T5). Formulas alone, of whole sequences and without a cache. Chapter
// 18 trains it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "04_causal_attention/multi_head.hpp"
#include "07_swiglu/fast/feed_forward_weights.hpp"

namespace t2t {

struct EncoderDecoderConfig {
  std::size_t C;  // width of both streams, even
  std::size_t H;  // heads; divides C
  std::size_t F;  // width of the feed-forward networks
  std::size_t L;  // blocks of the encoder, and as many of the decoder
  std::size_t V;  // vocabulary, shared by source and target
  Activation activation = Activation::relu;
  float eps = 1e-5f;  // the norms'
};

struct EncoderBlock {
  Tensor<1> self_norm;         // [C], the gain of an RMSNorm, as all norms here
  AttentionWeights self;       // four [C, C]
  Tensor<1> network_norm;      // [C]
  FeedForwardWeights network;  // w_up [F, C], w_down [C, F]; w_gate [F, C] if gated
};

struct DecoderBlock {
  Tensor<1> self_norm;         // [C]
  AttentionWeights self;       // four [C, C]
  Tensor<1> cross_norm;        // [C]
  AttentionWeights cross;      // four [C, C]: w_q reads the target, w_k and w_v the source
  Tensor<1> network_norm;      // [C]
  FeedForwardWeights network;  // as the encoder's
};

struct EncoderDecoder {
  EncoderDecoderConfig config;
  Tensor<2> embedding;                // [V, C], of the source, of the target and of the logits
  std::vector<EncoderBlock> encoder;  // L
  Tensor<1> encoder_norm;             // [C]
  std::vector<DecoderBlock> decoder;  // L
  Tensor<1> decoder_norm;             // [C]
};

/// Gains of 1; the embedding from N(0, 1/C), the other matrices as chapters 04 and 07 draw them.
EncoderDecoder draw_encoder_decoder(const EncoderDecoderConfig& config, Random& random);

/// What each stack begins with: the embedding's rows times √C, and the sinusoids of positions 0, 1
/// …: [T, C]. Throws std::invalid_argument for no ids, an id outside [0, V), and a number of blocks
/// that is not L.
Tensor<2> begin_stream(std::span<const int> ids,  // [T]
                       const EncoderDecoder& model);

/// What the norms of a stack read, in order: [T, C] each. The backward pass needs no more.
using NormInputs = std::vector<Tensor<2>>;

/// A vector for each token of the source, which knows the whole source: [S, C]. Adds the inputs of
/// the encoder's 2·L + 1 norms to kept, if it is given. Throws as begin_stream does, and as the
/// sublayers do on shapes.
Tensor<2> encode(std::span<const int> source,  // [S]
                 const EncoderDecoder& model, NormInputs* kept = nullptr);

/// Row t holds a score for each token that could follow target token t: [T, V]. Adds the inputs of
/// the decoder's 3·L + 1 norms to kept, if it is given. Throws as encode does, of the target.
Tensor<2> decode(std::span<const int> target,  // [T]
                 const Tensor<2>& encoded,     // [S, C], from encode
                 const EncoderDecoder& model, NormInputs* kept = nullptr);

/// The target that the model finds likeliest token by token, after `start`, which is not returned.
/// It ends before the token `stop`, or with `most` tokens. Throws as encode and decode do.
std::vector<int> greedy_answer(std::span<const int> source,  // [S]
                               int start, int stop, std::size_t most, const EncoderDecoder& model);

}  // namespace t2t
