// The show's part on the root of D: what it does to the weights and to their derivatives.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_root(const Program& program);

}  // namespace t2t
