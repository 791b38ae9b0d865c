// A runner without a model: it writes the tokens themselves into its pages, and its next token is a
// hash of all tokens that it finds there. The slightest mistake with pages (a missing token,
// another sequence's page, a stale page) changes the answer, and ten thousand workloads take
// seconds.
#pragma once

#include "15_serving/engine/model_runner.hpp"
#include "15_serving/speculation/draft.hpp"

namespace t2t {

/// Pages that hold only tokens. Answers are below V.
ModelRunner toy_runner(const EngineOptions& options, std::size_t V);

/// Its next token after these tokens.
int toy_answer(std::span<const int> tokens, std::size_t V);

/// A drafter of the toy runner's next tokens, about `wrong` percent of which are wrong.
Drafter toy_drafter(std::size_t V, std::size_t wrong);

}  // namespace t2t
