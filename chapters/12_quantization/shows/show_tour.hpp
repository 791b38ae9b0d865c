// What the program shows without flags: quantized weights and a quantized matrix, and their effect
// on a file's model. For main.cpp.
#pragma once

#include "10_pretrained/program/flags.hpp"

namespace t2t {

/// Returns the exit status.
int show_tour(const Flags& flags);

}  // namespace t2t
