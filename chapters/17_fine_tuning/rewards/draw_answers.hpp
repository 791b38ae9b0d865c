// Answers drawn from a model, for many prompts at once: the answers that it then learns from.
//
//   logits = forward(prompt)
//   then, again and again for all answers that have not ended:  token = draw(logits)
//                                                               logits = forward(token)
//
// Tokens are drawn from p itself, at temperature 1 and without filters, because the weights of
// grpo.hpp are right only for tokens that were drawn from the p that is learned.
#pragma once

#include <cstdint>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "17_fine_tuning/preferences/transcript.hpp"

namespace t2t {

struct DrawOptions {
  int end = 0;           // the mark that ends an answer, and is its last token
  std::size_t most = 1;  // tokens of an answer, its end included
  std::uint64_t seed = 1;
};

/// An answer to each prompt: the prompt's tokens are given, the answer's are learned, with the end
/// mark unless `most` tokens came before it. Answers to equal prompts differ, since each has random
/// numbers of its own. Throws std::invalid_argument as forward does, without prompts, for a `most`
/// of 0 and an end outside [0, V).
std::vector<Transcript> draw_answers(const Model& model,
                                     const std::vector<std::vector<int>>& prompts,
                                     const DrawOptions& drawing);

/// The tokens of an answer, without its prompt.
std::vector<int> answer_of(const Transcript& transcript);

}  // namespace t2t
