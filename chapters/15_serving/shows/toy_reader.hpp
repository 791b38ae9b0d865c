// A reader that is no model: it writes the tokens themselves into its pages, and what comes next is
// a hash of all tokens that it finds there. So the slightest mistake with pages, a token too few, a
// page of another text, an old page that was used again, changes the answer, and ten thousand
// workloads take seconds.
#pragma once

#include "15_serving/engine/page_reader.hpp"
#include "15_serving/speculation/draft.hpp"

namespace t2t {

/// Pages of nothing but tokens. Answers are below V.
PageReader toy_reader(const PageSizes& sizes, std::size_t V);

/// What it says after these tokens.
int toy_answer(std::span<const int> tokens, std::size_t V);

/// Drafts of what it says. After `wrong` of a hundred texts, the next token is another one.
Draft toy_draft(std::size_t V, std::size_t wrong);

}  // namespace t2t
