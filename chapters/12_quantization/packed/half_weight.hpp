// 16-bit weights, F16 or BF16, kept as they are stored: half the memory of floats.
//
// A product converts a few rows at a time to floats, in memory that stays in a cache, and
// multiplies these. No weight is rounded, and the result is that of floats. For one token half as
// many bytes come from memory.
#pragma once

#include <cstdint>
#include <span>

#include "10_pretrained/file/dequantize.hpp"
#include "weight.hpp"

namespace t2t {

/// Throws std::invalid_argument unless type is F16 or BF16 and stored has the size of all rows.
Weight half_weight(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                   std::size_t cols);

}  // namespace t2t
