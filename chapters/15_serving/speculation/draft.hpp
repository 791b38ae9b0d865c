// Drafts: guesses at the tokens by which a sequence goes on, from something that costs less than
// the model.
//
//   from the sequence   the longest end of the sequence that occurred before, and what followed it
//   there from a model    the likeliest tokens of a smaller model
//
// The engine (engine/engine.hpp) lets the model read a few drafted tokens in one pass with the
// sequence's last one, and accepts those that the model chooses itself. So a draft changes how long
// an answer takes, and no token of it. Drafting from the sequence: Saxena 2023, "Prompt Lookup
// Decoding".
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// Returns up to k tokens that may follow the tokens so far. None is a good answer, too.
using Draft = std::function<std::vector<int>(std::span<const int> tokens, std::size_t k)>;

/// Looks for the last n tokens earlier in the sequence, where n is `longest` first, then one
/// fewer, down to `shortest`. Returns what followed there, up to the end of the sequence; of
/// several places it is the last. Throws std::invalid_argument unless 1 <= shortest <= longest.
Draft draft_from_text(std::size_t longest = 4, std::size_t shortest = 2);

/// The greedy tokens of a model, which must outlive the draft, for sequences of up to S tokens; a
/// longer sequence gets none. The model keeps what it has read, and reads only what is new since
/// the last call: tokens that were drafted and have not become part of the sequence are cut off
/// again. So each sequence should have a draft of its own; if several share one, the model reads
/// more. Throws as ModelState does, and when it is called as forward does.
Draft draft_from_model(const Model& model, std::size_t S);

}  // namespace t2t
