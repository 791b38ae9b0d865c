// The chapter's figure: which words a word attends to. For main.cpp.
#pragma once

#include <string>

#include "random.hpp"

namespace t2t {

/// The weights of one head for the first nine words of a text, as SVG. A word's vector is the sum
/// of random vectors of its letters, at unit size, and serves as query and key: words with letters
/// in common attend to each other.
std::string figure_of_weights(const std::string& text, Random& random);

}  // namespace t2t
