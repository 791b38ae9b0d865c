// What a ModelState (forward.hpp) is made of: the sizes of its memory, and functions that take the
// place of its own. Chapter 12 brings an attention with rounded caches, a server (15) one with
// pages, and chapter 14 a network of experts.
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
/// Sends x through all blocks, in the place of run_layers: another machine's, such as a GPU's.
using Layers = std::function<void(const Model& model, Matrix x, Runs runs, const Trace& trace)>;

/// Options of a ModelState. Each function may be empty.
struct StateOptions {
  std::size_t chunk = 512;    // most rows in the blocks at once; at most sequences·S are used
  std::size_t sequences = 1;  // continued at the same time
  AttentionKernel kernel{};   // of a CachedAttention; empty: chapter 06's
  SequenceMemory memory{};    // of this state alone; empty: a CachedAttention
  MakeNetwork network{};      // empty: chapter 07's
  BeforeSum before_sum{};     // as in BlockFunctions
  Layers layers{};            // if given, kernel, memory, network and before_sum are not used
  std::function<void(Matrix x)> embedded{};     // is handed a chunk's embedding, before the trace
  std::function<void(Matrix logits)> scored{};  // is handed all logits; forward_all's by chunk
};

/// Checks what a state of S positions is to be made of, before anything is made for it. Throws
/// std::invalid_argument as expect_config does, when S is 0 or above T_max, when chunk or sequences
/// is 0, and for experts without a network.
void expect_state_options(const Config& config, std::size_t S, const StateOptions& options);

}  // namespace t2t
