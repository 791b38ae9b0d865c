// The two schedules on paper: every forward pass takes the same time, and every backward pass
// twice as long.
#pragma once

#include <cstddef>

#include "tensor.hpp"

namespace t2t {

/// Draws both schedules, and compares the time that stages are idle with the formula. Returns the
/// shares of GPipe, of 1F1B and of the formula, [1, 3].
Tensor<2> show_plan(std::size_t stages, std::size_t parts);

}  // namespace t2t
