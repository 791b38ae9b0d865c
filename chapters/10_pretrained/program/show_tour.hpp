// What the program shows without flags: the model of a file, its answer to a question, and what
// happens when q and k are turned in the wrong pairing. For main.cpp.
#pragma once

#include <cstddef>

#include "10_pretrained/program/flags.hpp"

namespace t2t {

/// What is shown when no task is asked for, with or without the weights.
int show_tour(const Flags& flags, std::size_t seed);

}  // namespace t2t
