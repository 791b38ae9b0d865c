// The model at work: new tokens go in, of one text or of several, and logits come out.
//
//   embed_tokens  →  run_layers  →  logits_of
//
// forward puts the three together and keeps what a text has left in its caches (ModelState). Code
// that stores its texts in another way calls the three itself, with its own attention: training
// (13) has no caches, a server (15) has pages. Rows of several texts lie one after the other in x
// [T, C], as docs/README.md says.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "08_block/cached_attention.hpp"
#include "09_language_model/model.hpp"

namespace t2t {

/// x = embedding[ids] (+ positions start, start + 1 …). Throws std::invalid_argument for an id
/// outside [0, V), for a position past the table, and when x is not [T, C].
void embed_tokens(const Model& model,
                  std::span<const int> ids,  // [T], of one text
                  std::size_t start,         // the position of the first
                  Matrix x);                 // [T, C]

/// All blocks, in place. Throws as block_rows does.
void run_layers(const Model& model,
                Matrix x,  // [T, C]
                const BlockSlots& slots, BlockScratch& scratch, const Trace& trace = {});

/// The final norm and the head: logits = norm(x)·headᵀ. Throws std::invalid_argument when shapes
/// disagree.
void logits_of(const Model& model,
               Matrix x,       // [N, C]: the norm is written over it
               Matrix logits,  // [N, V]
               const Trace& trace = {});

/// What a state is made for.
struct StateOptions {
  std::size_t chunk = 512;      // rows of a pass through the blocks: longer prompts go in chunks
  std::size_t texts = 1;        // texts that go on side by side
  AttentionKernel kernel = {};  // how queries meet their keys: empty, chapter 06's
  Network network = {};         // as in BlockSlots; so is before_sum
  BeforeSum before_sum = {};
};

/// What texts need while they go on: made once, used for many texts.
struct ModelState {
  std::size_t S;                               // positions that there is room for in each text
  std::unique_ptr<CachedAttention> attention;  // what each text has left in every layer
  BlockSlots slots;                            // that attention, and what the options put in
  BlockScratch scratch;                        // for up to `chunk` rows
  Tensor<2> x;                                 // [chunk, C], the residual stream
  Tensor<2> last;                              // [texts, C], of each text's last token
  std::vector<std::size_t> lengths;  // [texts], each length before a call, restored if it throws

  /// Room for S positions, at most T_max. Throws std::invalid_argument as expect_config does, when
  /// S is 0 or above T_max, and for a chunk or texts of 0; std::runtime_error, with what it wants,
  /// for more memory than is free.
  ModelState(const Config& config, std::size_t S, StateOptions options = {});

  /// Tokens that a text has been given: the next one stands at this position.
  std::size_t length(std::size_t text = 0) const { return attention->position(text); }
};

/// Forgets all texts; or keeps the first `position` tokens of one. Throws std::invalid_argument
/// when there are not so many.
void reset(ModelState& state);
void truncate(ModelState& state, std::size_t position, std::size_t text = 0);

/// The kernel: T more tokens of text 0, a prompt or the token sampled last. Writes the logits of
/// the last. Allocates nothing. trace, if given, sees the embedding and each block's parts,
/// chunk by chunk, then the final norm and the logits, once. Throws std::invalid_argument for no
/// ids, an id outside [0, V), no room for T more, a state of another model and when logits is not
/// [V]. Whatever is thrown, by a slot or the trace too, the state then has not seen these T tokens.
void forward(const Model& model, ModelState& state,
             std::span<const int> ids,  // [T]
             Row logits,                // [V], of the last token
             const Trace& trace = {});

/// The same with the logits of all T tokens, for a loss or a perplexity.
void forward_all(const Model& model, ModelState& state,
                 std::span<const int> ids,  // [T]
                 Matrix logits,             // [T, V]
                 const Trace& trace = {});

/// More tokens of one of several texts.
struct MoreTokens {
  std::size_t text;
  std::span<const int> ids;
};
/// As forward, for several texts at once, each of its own length and at its own position: one
/// product for the tokens of all. Throws also for a text that is not there or comes twice.
void forward(const Model& model, ModelState& state, std::span<const MoreTokens> more,  // [N]
             Matrix logits,  // [N, V], of the last token of each
             const Trace& trace = {});
void forward_all(const Model& model, ModelState& state, std::span<const MoreTokens> more,
                 Matrix logits,  // [tokens of all, V]
                 const Trace& trace = {});

}  // namespace t2t
