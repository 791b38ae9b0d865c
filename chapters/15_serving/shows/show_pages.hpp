// Pages as sequences come and go, and how much memory pages save. For main.cpp.
#pragma once

#include "program/program.hpp"

namespace t2t {

/// Three sequences in twelve pages: what each does in each step, and what the pages hold after it.
void show_pages();

/// Memory for sequences of many lengths: contiguous memory for the longest, or pages.
void show_waste(const Program& program);

}  // namespace t2t
