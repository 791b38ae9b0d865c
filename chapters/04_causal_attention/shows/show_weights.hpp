// The show's first part: the scores and the weights of one head, and four masks.
#pragma once

#include <string>
#include <vector>

#include "program/program.hpp"
#include "tensor.hpp"

namespace t2t {

/// Each token serves as its own query and key. Equal letters have equal vectors, so one can predict
/// which keys a query attends to.
void show_one_head(const Program& program, const Tensor<2>& x,
                   const std::vector<std::string>& labels);

void show_masks();

}  // namespace t2t
