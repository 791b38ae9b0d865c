// Generation: a prompt goes in, and each token that is sampled goes in after it.
//
//   logits = forward(prompt)
//   then, again and again:  token = sample(logits)
//                           logits = forward(token)
//
// With the caches of chapter 05, every token goes through the model once. Ends at a stop token, at
// a number of tokens, when the context is full, or when the caller has had enough. One text at a
// time (chapter 15 serves many); chapter 10 chats with it.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "09_language_model/forward.hpp"
#include "09_language_model/sampling.hpp"

namespace t2t {

struct Generation {
  std::size_t most = 64;        // tokens
  std::vector<int> stops = {};  // ids that end a text; not handed on
  Sampling sampling = {};
  std::function<void(Row logits)> filter = {};  // sees them first: −infinity forbids a token
};

enum class Ending { stop_token, most_tokens, context_full, caller };
std::string_view ending_text(Ending ending);

/// Goes on from what the state's first text has seen: with the prompt, then token by token, each
/// handed to on_token at once; false from it ends the text. Afterwards state.length() tokens of
/// prompt and answer have been through the model: the last one handed on may not have been, and
/// belongs in front of the next prompt. After the first token it allocates nothing. Throws
/// std::invalid_argument as forward, expect_sampling and greedy do; for most of 0 and a stop
/// outside [0, V). With a prompt that finds no room, nothing has been handed on.
Ending generate(const Model& model, ModelState& state,
                std::span<const int> prompt,  // [T], not empty
                const Generation& generation, Random& random,
                const std::function<bool(int id)>& on_token);

/// The same, all at once: the tokens handed on.
std::vector<int> generate(const Model& model, ModelState& state,
                          std::span<const int> prompt,  // [T], not empty
                          const Generation& generation, Random& random);

}  // namespace t2t
