// What the program shows of the method itself: four keys by hand, which blocks of scores are
// computed, the scratch memory and the error. For main.cpp.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_four_keys();

/// The scores of T queries, the last of S positions, cut into blocks as the kernel cuts them.
void show_blocks();

/// How many scores a window leaves, at the sizes that bench.cpp times.
void show_window();

void show_memory();

void show_error(const Program& program);

}  // namespace t2t
