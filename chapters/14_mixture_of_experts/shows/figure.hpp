// The chapter's figure: the experts of a few tokens, and each expert's load. For main.cpp.
#pragma once

#include <string>

#include "14_mixture_of_experts/shows/show_choice.hpp"

namespace t2t {

/// A row for each token with the weights of its experts, above a bar for each expert's rows, as
/// SVG.
std::string figure_of_loads(const RoutedLetters& letters);

}  // namespace t2t
