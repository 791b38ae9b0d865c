// The show's part on several heads: what each attends to, how heads are split, why there are
// several.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "tensor.hpp"

namespace t2t {

void show_heads(const Program& program, const Tensor<2>& x, std::size_t H,
                const std::vector<std::string>& labels);

void show_split();

void show_two_values();

}  // namespace t2t
