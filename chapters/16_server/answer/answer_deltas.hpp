// Turns the engine thread's messages about some answers into what a client sees: pieces of text,
// and at the end of each answer its reason.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "16_server/answer/answer_event.hpp"
#include "16_server/answer/answer_text.hpp"

namespace t2t {

/// What one token, or the end, adds to an answer.
struct AnswerDelta {
  std::size_t answer;  // which of those that were asked for together
  std::string text;    // often empty: see AnswerText
  std::optional<TokenLogprobs> logprobs = {};
  /// At the end, "stop": a stop token or a stop string; "length": the limit of tokens, or the end
  /// of the context. Otherwise empty.
  std::string reason = {};
  std::size_t offset = 0;  // characters of the answer's tokens before this one
  /// With the first piece, if wanted: the log-probabilities of the prompt's tokens from the second
  /// one on.
  std::optional<std::vector<TokenLogprobs>> prompt = {};
};

class AnswerDeltas {
 public:
  /// For `answers` answers, each of which ends before these strings. The tokenizer must outlive it.
  AnswerDeltas(const Bpe& bpe, std::size_t answers, const std::vector<std::string>& stop_strings)
      : bpe_(bpe),
        texts_(answers, AnswerText(bpe, stop_strings)),
        characters_(answers),
        ended_(answers),
        going_on_(answers) {}

  /// For a failed answer, throws std::bad_alloc if memory was missing, otherwise std::runtime_error
  /// with the reason. No message may follow an answer's end, unless a stop string has ended it:
  /// then messages on their way return nothing.
  std::optional<AnswerDelta> take(const AnswerEvent& answer_event);
  bool all_ended() const { return going_on_ == 0; }
  /// Tokens of all answers, without the stop tokens.
  std::size_t tokens() const { return tokens_; }

 private:
  const Bpe& bpe_;
  std::vector<AnswerText> texts_;
  std::vector<std::size_t> characters_;  // of each answer's tokens
  std::vector<bool> ended_;
  std::size_t going_on_, tokens_ = 0;
};

}  // namespace t2t
