// The chapter's figure: the block with the shapes of what flows through it. For main.cpp.
#pragma once

#include <string>

#include "08_block/block_settings.hpp"
#include "random.hpp"

namespace t2t {

/// A pre-norm block with a gated network as SVG. x, [T, C], goes through a block of these settings,
/// and each box says the shapes of its result and of its weights, as the block reports them.
std::string figure_of_block(const Tensor<2>& x, const BlockSettings& settings, Random& random);

}  // namespace t2t
