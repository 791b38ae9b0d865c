// What a ModelState (forward.hpp) is made of: the sizes of its memory, and functions that take the
// place of its own. Chapter 12 brings an attention with rounded caches, a server (15) one with
// pages, chapter 14 a network of experts, and chapter 11 a whole pass on a GPU.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "08_block/fast/cached_attention.hpp"
#include "09_language_model/fast/model.hpp"

namespace t2t {

/// An attention and what it keeps of the sequences of one state. It is made before the state, for
/// the layers settings_of_all(config), for S, `sequences`, and calls that bring up to min(chunk, S)
/// rows of a sequence. `truncated` is called when a sequence is cut to `position` tokens, also by
/// reset, and may free the memory after them; it may be empty.
struct SequenceMemory {
  Attention attention = {};
  std::function<void(std::size_t sequence, std::size_t position)> truncated = {};
};
/// Makes a network with its scratch memory, for calls of up to max_rows rows. Each state makes one
/// of its own, once it has checked that a chunk's rows fit into memory.
using MakeNetwork =
    std::function<FeedForward(std::span<const BlockSettings> layers, std::size_t max_rows)>;

/// More tokens of one of several sequences.
struct MoreTokens {
  std::size_t sequence;
  std::span<const int> ids;
  std::size_t wanted = 1;  // how many of the last ids want logits; 0 if the prompt is to go on
};
/// The whole pass from ids to logits, on another machine such as a GPU, which keeps the keys and
/// values too. It is called with what forward has checked. lengths[s] tokens of sequence s have
/// been through the model; whatever it keeps of later positions is to be overwritten.
using Pass =
    std::function<void(const Model& model, std::span<const MoreTokens> more,
                       std::span<const std::size_t> lengths,  // [sequences]
                       Matrix logits)>;  // [N, V]: of the tokens that want logits, in their order

/// Options of a ModelState. Each function may be empty.
struct StateOptions {
  std::size_t chunk = 512;    // most rows in the blocks at once; at most sequences·S are used
  std::size_t sequences = 1;  // continued at the same time
  AttentionKernel kernel{};   // of a CachedAttention; empty: chapter 06's
  SequenceMemory memory{};    // of this state alone; empty: a CachedAttention
  MakeNetwork network{};      // empty: chapter 07's
  BeforeSum before_sum{};     // as in BlockFunctions
  Pass pass{};                // if given, only chunk, sequences and scored are used beside it
  std::function<void(Matrix x)> embedded{};     // is handed a chunk's embedding, before the trace
  std::function<void(Matrix logits)> scored{};  // is handed all logits; forward_all's by chunk
};

/// Checks what a state of S positions is to be made of, before anything is made for it. Throws
/// std::invalid_argument as expect_config does, when S is 0 or above T_max, when chunk or sequences
/// is 0, and for experts without a network.
void expect_state_options(const Config& config, std::size_t S, const StateOptions& options);

/// The most rows that go through a state's own blocks at once, for options that are good: `chunk`,
/// or all that the sequences can have; next to none with a Pass.
std::size_t rows_of_a_pass(std::size_t S, const StateOptions& options);

}  // namespace t2t
