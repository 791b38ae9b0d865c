// The chapter's figure: which keys and values each step computes, and which it reads from the
// cache. For main.cpp.
#pragma once

#include <string>
#include <vector>

#include "05_kv_cache/babbler/babbler.hpp"

namespace t2t {

/// Both ways to continue the same text, as SVG: a row for each step, a column for each token.
/// `text` holds the prompt's bytes and the generated ones.
std::string figure_of_steps(const std::string& text, const std::vector<Step>& without,
                            const std::vector<Step>& with);

}  // namespace t2t
