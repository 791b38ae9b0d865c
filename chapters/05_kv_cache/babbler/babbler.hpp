// A babbler: a model of one attention layer with random weights, which continues a text by bytes.
//
//   logits = unembed(attention(embed(ids)))       next = the printable byte with the highest logit
//
// It has learned nothing, so what it writes is babble. It does the same work per token as a trained
// layer of its size, with the cache and without. It is for this chapter's program, bench and tests
// only; chapter 09 generates text with a whole model.
#pragma once

#include <span>
#include <vector>

#include "04_causal_attention/multi_head.hpp"
#include "05_kv_cache/kv_cache.hpp"

namespace t2t {

struct Babbler {
  Tensor<2> table;           // [V, C], V = 256 bytes
  AttentionWeights weights;  // [C, C] each
  RopeTable rope;            // [S, D/2] each
  std::size_t H;             // heads, each with keys of its own: G = H
  AttentionScratch scratch;  // for the scores of calls of up to S queries over S keys

  std::size_t width() const { return table.shape(1); }
};

/// Draws a babbler for sequences of up to S bytes.
Babbler draw_babbler(std::size_t C, std::size_t H, std::size_t S, Random& random);

/// Without a cache: the text's T tokens all go through the layer. (Only the last token's output is
/// used here, but in a model of several layers the next layer needs the outputs of all.) Returns
/// the last token's logits, [1, V].
Tensor<2> logits_without(Babbler& babbler, std::span<const int> ids);  // [T]

/// With a cache: only the T new tokens go through the layer, at the positions after those that the
/// cache holds. Returns the last token's logits, [1, V].
Tensor<2> logits_with(Babbler& babbler, std::span<const int> ids, KvCache& cache);  // [T]

/// The printable byte, ' ' to '~', with the highest logit.
int next_byte(const Tensor<2>& logits);  // [1, V]

/// One step of a generation.
struct Step {
  int token;
  std::size_t kv_rows;  // tokens whose keys and values this step computed
};

/// `count` bytes after the prompt, without a cache: each step recomputes the whole text.
std::vector<Step> generate_without(Babbler& babbler, std::vector<int> ids, std::size_t count);

/// `count` bytes after the prompt, with an empty cache to begin with. The first call is the
/// prefill: it hands over the whole prompt. Each later call is a decode step: it hands over the one
/// token that the cache does not hold yet.
std::vector<Step> generate_with(Babbler& babbler, std::vector<int> ids, std::size_t count,
                                KvCache& cache);

}  // namespace t2t
