// The forward pass with caches: new tokens of one or several sequences go in, and logits come out.
//
//   embed_tokens  →  run_layers  →  logits_of
//
// forward calls these three; a ModelState knows how long each sequence is and keeps its keys and
// values in caches, or in whatever memory its options bring. Rows of several sequences lie one
// after the other in x [T, C].
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"
#include "09_language_model/fast/state_options.hpp"

namespace t2t {

/// x = embedding[ids]·embedding_scale (+ positions start, start + 1 …). Throws
/// std::invalid_argument for an id outside [0, V), for a position past the table, and when x is not
/// [T, C].
void embed_tokens(const Model& model,
                  std::span<const int> ids,  // [T], of one sequence
                  std::size_t start,         // the position of the first
                  Matrix x);                 // [T, C]

/// Sends x through all blocks, in place. The trace sees the blocks' intermediate results; forward
/// reports the embedding itself, before this. Throws as block_rows does.
void run_layers(const Model& model,
                Matrix x,   // [T, C]
                Runs runs,  // of the T rows
                const BlockFunctions& functions, BlockScratch& scratch, const Trace& trace = {});

/// The final norm and the head: logits = norm(x)·headᵀ, or cap·tanh(logits/cap) of them if the
/// Config has a logit_cap. Throws std::invalid_argument when shapes disagree.
void logits_of(const Model& model,
               Matrix x,       // [N, C]: the norm is written over it
               Matrix logits,  // [N, V]
               const Trace& trace = {});

/// The memory in which sequences are continued: made once, used for one after another.
/// It can be moved, but not copied.
struct ModelState {
  std::size_t S, L;                  // tokens that each sequence has room for; layers
  std::vector<std::size_t> lengths;  // [sequences] tokens that have been through the model
  StateOptions options;
  BlockFunctions functions;  // made as the options say
  std::function<void(std::size_t sequence, std::size_t position)> truncated;
  BlockScratch scratch;   // for up to `chunk` rows
  Tensor<2> x;            // [chunk, C], the residual stream
  Tensor<2> last;         // [sequences or more, C]: the tokens that want logits
  std::vector<Run> runs;  // of a chunk

  /// Each sequence gets room for S tokens. Throws as expect_state_options does; std::runtime_error,
  /// with the bytes wanted, when there is not enough free memory for the caches of all sequences
  /// (but those of a SequenceMemory are checked by its maker), a chunk's rows in the blocks, RoPE's
  /// table. With a Pass, which has its own memory, nothing of this is made.
  ModelState(const Config& config, std::size_t S, StateOptions options = {});
  ModelState(const ModelState&) = delete;  // a copy's functions would write to the same caches
  ModelState(ModelState&&) = default;
  ModelState& operator=(ModelState&&) = default;

  /// How many tokens of a sequence have been through the model: the position of its next one.
  /// Throws std::invalid_argument for a sequence that is not there.
  std::size_t length(std::size_t sequence = 0) const;
};

/// reset forgets all sequences; truncate keeps the first `position` tokens of one. Throws
/// std::invalid_argument when the sequence is shorter, or not there.
void reset(ModelState& state);
void truncate(ModelState& state, std::size_t position, std::size_t sequence = 0);

/// Says that the attention's memory holds the first `length` tokens of a sequence, for an owner of
/// that memory who put them there, as a server does with pages. Throws std::invalid_argument when
/// length is above S, or the sequence is not there.
void set_length(ModelState& state, std::size_t length, std::size_t sequence);

/// Runs T more tokens of sequence 0, a prompt or the token chosen last, and writes the logits of
/// the last one. Allocates nothing. trace, if given, sees the embedding and each block's
/// intermediate results, chunk by chunk, then the final norm and the logits, once. Throws
/// std::invalid_argument, checked in this order: for a state made for other C or L, or with an S
/// above the model's T_max; for no ids, no room for T more tokens, and an id outside [0, V); when
/// logits is not [V]; for a trace of a state with a Pass. The attention refuses other sizes of
/// heads. If anything throws, be it one of the caller's functions or the trace, every sequence
/// keeps its old length: lengths grow at the very end.
void forward(const Model& model, ModelState& state,
             std::span<const int> ids,  // [T]
             Row logits,                // [V], of the last token
             const Trace& trace = {});

/// The same with the logits of all T tokens, as a loss needs them. The trace sees the final norm
/// and the logits chunk by chunk, each chunk's after its blocks. With a Pass, it allocates.
void forward_all(const Model& model, ModelState& state,
                 std::span<const int> ids,  // [T]
                 Matrix logits,             // [T, V]
                 const Trace& trace = {});

/// As forward, for several sequences at once, each with its own number of tokens and at its own
/// position. The tokens of all sequences share each product with weights. Throws also for no
/// entries, and, entry by entry, for one without ids, with more logits wanted than it has ids, and
/// for a sequence that the state does not have or that comes twice. Allocates when more logits are
/// wanted than the state has sequences.
void forward(const Model& model, ModelState& state, std::span<const MoreTokens> more,
             Matrix logits,  // [N, V]: of the tokens that want logits, in their order
             const Trace& trace = {});
void forward_all(const Model& model, ModelState& state, std::span<const MoreTokens> more,
                 Matrix logits,  // [tokens of all sequences, V]
                 const Trace& trace = {});

}  // namespace t2t
