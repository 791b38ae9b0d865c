// What has happened to an answer, with the log-probabilities that a client wants.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "15_serving/engine/engine.hpp"
#include "16_server/answer/token_logprobs.hpp"

namespace t2t {

/// What has happened to one of the answers that were asked for together.
struct AnswerEvent {
  std::size_t answer;                          // 0, 1 …
  Event event;                                 // its id is the engine's
  std::optional<TokenLogprobs> logprobs = {};  // of its token, if wanted
  /// The first time, if wanted: the log-probabilities of the prompt's tokens from the second one
  /// on.
  std::optional<std::vector<TokenLogprobs>> prompt = {};
};

}  // namespace t2t
