// The losses of one training on one rank and on many.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// Prints some of them with their difference, and returns all, [steps, 2].
Tensor<2> print_losses(std::size_t ranks, const std::vector<double>& alone,
                       const std::vector<double>& divided);

}  // namespace t2t
