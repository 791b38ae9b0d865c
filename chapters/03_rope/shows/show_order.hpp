// The program's first part: one attention layer that is given positions in several ways, or not at
// all.
#pragma once

#include "program/program.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

void show_order(const Program& program, Random& random);

}  // namespace t2t
