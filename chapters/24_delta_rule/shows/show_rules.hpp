// The rules on a case by hand, in both forms, and a text in two calls.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_two_tokens();
void show_two_calls(const Program& program, std::size_t most_tokens);

}  // namespace t2t
