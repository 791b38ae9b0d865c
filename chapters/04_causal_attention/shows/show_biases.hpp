// The show's part on biases: what ALiBi's do to the weights of near and far keys.
#pragma once

#include "program/program.hpp"

namespace t2t {

void show_biases(const Program& program);

}  // namespace t2t
