// Generation: the prompt goes through the model, then each new token does, one at a time.
//
//   logits = forward(prompt)
//   then, again and again:  token = sample(logits)
//                           logits = forward(token)
//
// With the caches of chapter 05, each token goes through the model once. Generation ends at a stop
// token, when the caller says so, after a number of tokens, or when the context is full. It
// continues one sequence (chapter 15 serves many); chapter 10 uses it to chat.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "09_language_model/sampling.hpp"

namespace t2t {

struct Generation {
  std::size_t most = 64;              // new tokens at most
  std::size_t sequence = 0;           // which of the state's sequences to continue
  std::vector<int> stop_tokens = {};  // ids that end it; on_token does not get them
  Sampling sampling = {};
  std::function<void(Row logits)> filter = {};  // changes logits first: −infinity forbids an id
};

/// Why a sequence ended. When several reasons hold after one token, the first in this order counts.
enum class Ending {
  stop_token,    // "a stop token"
  caller,        // "the caller": on_token returned false
  most_tokens,   // "the limit of tokens": `most`
  context_full,  // "the end of the context": the token has no position left
};
/// The words that stand beside it above.
std::string_view ending_text(Ending ending);

/// Continues one of the state's sequences with the prompt, then token by token. Each new token is
/// given to on_token at once, which returns false to end the sequence. Afterwards
/// state.length(sequence) tokens have been through the model: the last one given to on_token is not
/// among them, unless a stop token ended the sequence, and belongs in front of the next prompt.
/// Allocates nothing after the first token. Throws std::invalid_argument as forward,
/// expect_sampling and greedy do, for a `most` of 0 and for a stop outside [0, V). When there is no
/// room for the prompt, it throws before on_token is called.
Ending generate(const Model& model, ModelState& state,
                std::span<const int> prompt,  // [T], not empty
                const Generation& generation, Random& random,
                const std::function<bool(int id)>& on_token);

/// The same. Returns all tokens at the end.
std::vector<int> generate(const Model& model, ModelState& state,
                          std::span<const int> prompt,  // [T], not empty
                          const Generation& generation, Random& random);

}  // namespace t2t
