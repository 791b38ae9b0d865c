// Drafts: guesses at a sequence's next tokens, from something that costs less than the model.
//
//   from the sequence   the tokens that followed an earlier occurrence of the sequence's last few
//                       (an n-gram match)
//   from a model        the likeliest tokens of a smaller model
//
// The engine (engine/engine.hpp) lets the model read a few draft tokens in one pass with the
// sequence's last one, and accepts those that the model chooses itself. A draft thus changes an
// answer's time, but none of its tokens. Drafting from the sequence: Saxena 2023, "Prompt Lookup
// Decoding".
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "09_language_model/fast/model.hpp"

namespace t2t {

/// Returns up to k tokens that may follow the tokens so far. Returning none is also fine.
using Drafter = std::function<std::vector<int>(std::span<const int> tokens, std::size_t k)>;

/// Looks for the last n tokens earlier in the sequence, where n is `longest` first, then one
/// fewer, down to `shortest`. Returns what followed there, up to the end of the sequence; of
/// several places, the last counts. Throws std::invalid_argument unless 1 <= shortest <= longest.
Drafter lookup_drafter(std::size_t longest = 4, std::size_t shortest = 2);

/// The greedy tokens of a model, which must outlive the drafter, for sequences of up to S tokens; a
/// longer sequence gets none. The model caches what it has read, and reads only what is new since
/// the last call: drafted tokens that were not accepted are cut off again. Each sequence should
/// therefore have its own drafter; if several share one, the model reads more. Throws as ModelState
/// does, and when it is called as forward does.
Drafter model_drafter(const Model& model, std::size_t S);

}  // namespace t2t
