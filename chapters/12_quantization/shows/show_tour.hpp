// What the program shows without flags: numbers and a matrix in few bits, and what they do to the
// model of a file. For main.cpp.
#pragma once

#include "10_pretrained/program/flags.hpp"

namespace t2t {

/// Returns the exit status.
int show_tour(const Flags& flags);

}  // namespace t2t
