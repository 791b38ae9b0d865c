// Answers that must be JSON: which tokens may come, and answers from random logits. For main.cpp.
#pragma once

namespace t2t {

/// The tokens that may come after some beginnings, and answers with and without a filter.
void show_structured();

}  // namespace t2t
