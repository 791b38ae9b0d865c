// The flag --float of programs that otherwise keep a file's weights as they are packed. For
// main.cpp, here and in chapter 14.
#pragma once

#include "10_pretrained/program/flags.hpp"

namespace t2t {

/// What such a program makes of the weights: packed ones, or, with --float, floats as chapter 10
/// does. Throws std::invalid_argument for an adapter without --float.
void pack_unless(bool floats, const Program& program, Flags& flags);

}  // namespace t2t
