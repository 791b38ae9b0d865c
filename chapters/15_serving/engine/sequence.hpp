// A request, the engine's sequence of tokens for it, and the events reported about it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "09_language_model/generate.hpp"
#include "15_serving/engine/model_runner.hpp"
#include "15_serving/speculation/draft.hpp"
#include "random.hpp"

namespace t2t {

struct Request {
  std::vector<int> prompt;            // at least one token
  std::size_t max_new_tokens = 64;    // 0: the prompt is only read
  std::vector<int> stop_tokens = {};  // ids that end the sequence
  Sampling sampling = {};
  std::uint64_t seed = 0;
  /// If given, changes the logits of the next token before it is chosen: −infinity forbids a token.
  /// It depends on the answer so far alone, and what it throws becomes the sequence's error.
  std::function<void(std::span<const int> answer, Row logits)> filter = {};
  /// If given, is asked for up to `max_drafts` of the next tokens in each step of the answer, as
  /// far as budget and pages are left. What it throws becomes the sequence's error, and so does an
  /// id outside [0, V).
  Drafter drafter = {};
  std::size_t max_drafts = 4;
  /// Whether Engine::on_prompt_logits receives the logits that predict each prompt token from the
  /// second on. Then the whole prompt is read, whatever is found in pages.
  bool wants_prompt_logits = false;
};

/// The error of a sequence for which there was no memory.
inline constexpr const char* no_memory = "there is not enough memory";
/// The error of a sequence that ended because this was thrown.
inline std::string error_of(const std::exception& thrown) {
  return dynamic_cast<const std::bad_alloc*>(&thrown) ? no_memory : thrown.what();
}

/// What a step reports about a sequence: a token, its end, or both. When drafts are accepted, a
/// step reports several tokens of a sequence, one event for each.
struct Event {
  std::size_t id;
  std::optional<int> token;
  std::optional<Ending> ending;
  std::string error = {};  // why the sequence could not go on: it failed, so it has no Ending
};

/// A sequence that has been submitted and has not ended.
struct Sequence {
  std::size_t id, arrival;
  Request request;
  std::vector<int> tokens;         // the prompt and the answer so far
  std::size_t computed = 0;        // how many of them have keys and values, in pages or swap space
  std::vector<std::size_t> table;  // of their pages
  std::size_t index = 0;           // among the running sequences
  Random random;
  std::vector<PageCopy> swapped = {};  // after preemption: its pages, instead of a table
  std::size_t prompt_logits_sent = 0;  // prompt tokens whose logits were handed on

  /// Whether logits of the prompt are still to be handed on.
  bool needs_prompt_logits() const {
    return request.wants_prompt_logits && prompt_logits_sent + 1 < request.prompt.size();
  }
};

/// Throws std::invalid_argument, with the name, for an id outside [0, V).
void expect_token(const char* name, int id, std::size_t V);

}  // namespace t2t
