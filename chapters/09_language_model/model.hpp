// The language model: ids in, for each token a score for every token that could follow.
//
//   x = embedding[ids] (+ positions)     x = block(x), L times     logits = norm(x)·headᵀ
//
// Of its own it has the stack, the norm at its end and the head, which is the embedding's table
// once more when tied. Radford et al. 2019; Touvron et al. 2023. One text at a time; no dropout.
// Chapter 10 fills it with a real model's weights, 12 with smaller numbers, 13 trains it.
#pragma once

#include <span>
#include <vector>

#include "08_block/block.hpp"
#include "09_language_model/config.hpp"

namespace t2t {

/// Read from the top: it is the model's diagram. What the Config leaves out stays empty.
struct ModelWeights {
  Tensor<2> embedding;               // [V, C]
  Tensor<2> positions;               // [T_max, C], learned positions only
  std::vector<BlockWeights> blocks;  // L
  NormWeights final_norm;            // [C]
  Tensor<2> head;                    // [V, C], empty when tied
};

/// Tables from N(0, 0.02²) (positions 0.01²), gains 1, biases 0, blocks as block_weights draws them
/// with what is added to the stream times 1/√(2·L). Throws as expect_config does.
ModelWeights draw_model(const Config& config, Random& random);

/// Throws std::invalid_argument, naming the tensor ("layer 3: w_q …") and both shapes, unless every
/// one fits.
void expect_model(const ModelWeights& weights, const Config& config);

/// The table that logits are made with.
const Tensor<2>& head_of(const ModelWeights& weights, const Config& config);

std::size_t parameter_count(const ModelWeights& weights);

/// The formula: logits [T, V] of a whole text at once, from position 0. Throws
/// std::invalid_argument as expect_config and expect_model do, for no ids, for an id outside [0, V)
/// and for more than T_max.
Tensor<2> language_model(std::span<const int> ids,  // [T]
                         const ModelWeights& weights, const Config& config);

/// What a text needs while it goes on: made once, for any number of texts one after the other.
struct ModelState {
  std::size_t length;           // tokens seen: the next one stands at this position
  std::size_t S;                // positions there is room for
  std::vector<KvCache> caches;  // L of [G, S, D]
  RopeTable rope;               // [S, D/2] each; empty when nothing is turned
  BlockScratch scratch;         // for calls of up to `chunk` tokens
  Tensor<2> x;                  // [chunk, C], the residual stream
  Tensor<2> normed;             // [chunk, C]
};
/// Room for S positions, at most T_max; longer prompts than chunk go through in chunks, by the
/// caller's prefill where there is one (block.hpp). Throws std::invalid_argument as expect_config
/// does, or when S or chunk is 0 or S above T_max.
ModelState model_state(const Config& config, std::size_t S, std::size_t chunk = 512,
                       PrefillAttention prefill = {});

/// Forgets the text, or keeps its first `position` tokens only. Throws std::invalid_argument when
/// there are not so many.
void reset(ModelState& state);
void truncate(ModelState& state, std::size_t position);

/// The kernel: T more tokens, a prompt or the one that came last. Writes the logits of the last.
/// Allocates nothing. trace, if given, sees "embedding" (positions added), each block's parts as
/// "layer 3 q", "final_norm" and "logits" (of the last token), chunk by chunk. Throws
/// std::invalid_argument as language_model does, when there is no room for T more, when the state
/// is of another model or when logits is not [V]: all that before anything is written. If trace
/// throws, the state forgets these T tokens.
void forward(const Config& config, const ModelWeights& weights, ModelState& state,
             std::span<const int> ids,  // [T]
             Row logits,                // [V], of the last token
             const Trace& trace = {});

/// The same with the logits of all T tokens, for a loss or a perplexity.
void forward_all(const Config& config, const ModelWeights& weights, ModelState& state,
                 std::span<const int> ids,  // [T]
                 Matrix logits,             // [T, V]
                 const Trace& trace = {});

/// How surprised the model is by a text: the mean of −ln p(ids[t + 1] | ids[0 … t]), in nats, over
/// the T − 1 tokens that something stands before. e to this power is the perplexity. Throws
/// std::invalid_argument for fewer than two ids, for one outside [0, V) and on other shapes.
double next_token_loss(ConstMatrix logits,         // [T, V]
                       std::span<const int> ids);  // [T]

}  // namespace t2t
