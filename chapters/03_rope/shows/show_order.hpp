// The program's first part: one attention layer that is told positions in several ways, or not.
#pragma once

#include "program/program.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

void show_order(const Program& program, Random& random);

}  // namespace t2t
