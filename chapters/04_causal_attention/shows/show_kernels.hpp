// The show's part on a GPU: the three kernels on the text's own queries, keys and values.
#pragma once

#include "program/program.hpp"
#include "tensor.hpp"

namespace t2t {

/// On a GPU if the program was built for one, otherwise on the CPU stand-in, which takes the first
/// 32 tokens at most. Throws std::runtime_error if the result is further from the formula's than
/// rounding explains.
void show_kernels(const Program& program, const Tensor<2>& x, std::size_t H);

}  // namespace t2t
