// What many layers on top of each other do to their input and to a small change of it. For
// main.cpp.
#pragma once

#include "08_block/block_settings.hpp"
#include "random.hpp"
#include "tensor.hpp"

namespace t2t {

/// Of each layer of a stack: the sizes of chapter 18's small models, except that two query heads
/// share a key head. A ReLU network is wider, so that it has as many weights.
BlockSettings stack_settings(std::size_t C, bool relu);

void show_depth(const Tensor<2>& x,  // [T, C]
                const BlockSettings& settings, std::size_t L, float residual_scale, Random& random);

}  // namespace t2t
