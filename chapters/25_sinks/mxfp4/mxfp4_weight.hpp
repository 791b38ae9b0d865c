// Weights that stay packed in MXFP4: 4.25 bits each. A product unpacks some rows at a time to
// floats, in memory that stays in a cache, and multiplies these. The result is that of floats,
// since unpacking is exact. This saves memory, not time: unpacking takes longer than to read floats
// would. Chapter 12's product of integers is faster, with mxfp4_as_q8_0's blocks and twice the
// memory.
#pragma once

#include <cstdint>
#include <span>

#include "25_sinks/mxfp4/mxfp4.hpp"
#include "weight.hpp"

namespace t2t {

/// Copies the blocks. Throws as expect_mxfp4 does.
Weight mxfp4_weight(std::span<const std::uint8_t> stored, std::size_t rows, std::size_t cols);

}  // namespace t2t
