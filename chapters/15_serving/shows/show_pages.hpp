// Pages as sequences come and go, and how much memory pages save. For main.cpp.
#pragma once

#include "15_serving/shows/arrivals.hpp"
#include "program/program.hpp"

namespace t2t {

/// Runs a server with twelve pages of four tokens, to which three sequences with a common prefix
/// arrive one after another.
void run_three_sequences(const AfterStep& after);

/// Three sequences in twelve pages: what each does in each step, and what the pages hold after it.
void show_pages();

/// Memory for sequences of many lengths: contiguous memory for the longest, or pages.
void show_waste(const Program& program);

}  // namespace t2t
