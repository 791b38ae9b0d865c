// --experiment: trains the sides of an experiment and shows their held-out losses. For main.cpp.
#pragma once

#include <string>

namespace t2t {

/// The experiment of that name, or all of them. Throws std::invalid_argument, with all names, for
/// another one.
int show_experiments(const std::string& name, const std::string& text, std::size_t seeds);

}  // namespace t2t
