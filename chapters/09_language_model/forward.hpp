// The forward pass with caches: new tokens of one or several texts go in, and logits come out.
//
//   embed_tokens  →  run_layers  →  logits_of
//
// forward calls these three and keeps each text's keys and values in caches (ModelState). Code that
// keeps them elsewhere calls the three itself, with its own attention: training (chapter 13) has no
// caches, a server (15) has pages. Rows of several texts lie one after the other in x [T, C].
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

/// Sends x through all blocks, in place. The trace sees the blocks' parts; forward reports the
/// embedding itself, before this. Throws as block_rows does.
void run_layers(const Model& model,
                Matrix x,  // [T, C]
                const BlockSlots& slots, BlockScratch& scratch, const Trace& trace = {});

/// The final norm and the head: logits = norm(x)·headᵀ. Throws std::invalid_argument when shapes
/// disagree.
void logits_of(const Model& model,
               Matrix x,       // [N, C]: the norm is written over it
               Matrix logits,  // [N, V]
               const Trace& trace = {});

/// Options of a ModelState.
struct StateOptions {
  std::size_t chunk = 512;      // most rows in the blocks at once; above texts·S it counts as that
  std::size_t texts = 1;        // texts that are continued at the same time
  AttentionKernel kernel = {};  // attention's kernel; empty: chapter 06's
  Network network = {};         // this and before_sum: as in BlockSlots
  BeforeSum before_sum = {};
};

/// The memory in which texts are continued: made once, used for one text after another.
struct ModelState {
  std::size_t S;  // tokens that each text has room for
  // Each text's keys and values in every layer. forward sets its runs anew for each chunk, and
  // does not clear them: whoever calls run_layers with these slots sets the runs too.
  std::unique_ptr<CachedAttention> attention;
  BlockSlots slots;                  // attention, and the parts that the options replace
  BlockScratch scratch;              // for up to `chunk` rows
  Tensor<2> x;                       // [chunk, C], the residual stream
  Tensor<2> last;                    // [texts, C]: row i is the last token's, of entry i of a call
  std::vector<std::size_t> lengths;  // [texts], each length before a call, kept in case it throws

  /// Each text gets room for S tokens. Throws std::invalid_argument as expect_config does, when S
  /// is 0 or above T_max, and when chunk or texts is 0; std::runtime_error, with the bytes wanted,
  /// when there is not enough free memory for the caches of all texts, a chunk's rows in the
  /// blocks, and RoPE's table.
  ModelState(const Config& config, std::size_t S, StateOptions options = {});

  /// How many tokens of a text have been through the model: the position of its next one.
  std::size_t length(std::size_t text = 0) const { return attention->position(text); }
};

/// reset forgets all texts; truncate keeps the first `position` tokens of one. Throws
/// std::invalid_argument when the text is shorter, or not there.
void reset(ModelState& state);
void truncate(ModelState& state, std::size_t position, std::size_t text = 0);

/// Runs T more tokens of text 0, a prompt or the token chosen last, and writes the logits of the
/// last one. Allocates nothing. trace, if given, sees the embedding and each block's parts, chunk
/// by chunk, then the final norm and the logits, once. Throws std::invalid_argument, checked in
/// this order: for a state made for other C or L, or with an S above the model's T_max; for no ids,
/// no room for T more tokens, and an id outside [0, V); when logits is not [V]. The attention
/// refuses other sizes of heads. If anything throws, be it a slot or the trace, every text keeps
/// its old length.
void forward(const Model& model, ModelState& state,
             std::span<const int> ids,  // [T]
             Row logits,                // [V], of the last token
             const Trace& trace = {});

/// The same with the logits of all T tokens, as a loss needs them. The trace sees the final norm
/// and the logits chunk by chunk, each chunk's after its blocks.
void forward_all(const Model& model, ModelState& state,
                 std::span<const int> ids,  // [T]
                 Matrix logits,             // [T, V]
                 const Trace& trace = {});

/// More tokens of one of several texts.
struct MoreTokens {
  std::size_t text;
  std::span<const int> ids;
};
/// As forward, for several texts at once, each with its own number of tokens and at its own
/// position. The tokens of all texts share each product with weights. Throws also for no entries,
/// an entry without ids, a text that the state does not have, and one that comes twice.
void forward(const Model& model, ModelState& state, std::span<const MoreTokens> more,  // [N]
             Matrix logits,  // [N, V]: row i is that of more[i]'s last token
             const Trace& trace = {});
void forward_all(const Model& model, ModelState& state, std::span<const MoreTokens> more,
                 Matrix logits,  // [tokens of all texts, V]
                 const Trace& trace = {});

}  // namespace t2t
