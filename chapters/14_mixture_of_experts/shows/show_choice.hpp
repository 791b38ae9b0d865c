// The router at work on a few tokens. For main.cpp.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_choice(const Program& program);

}  // namespace t2t
