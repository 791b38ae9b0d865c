// Quantizing weights, in blocks of 32 that share a scale and, in some types, a minimum.
//
//   Q8_0   scale = max |x| / 127                    q = round(x / scale)                −127 … 127
//   Q4_0   scale = x / −8 for the x of largest |x|  q = round(x / scale) + 8            0 … 15
//   Q4_1   minimum = min x, scale = (max x − minimum) / 15
//                                                   q = round((x − minimum) / scale)    0 … 15
//
// Scale and minimum are stored as F16, but q is computed with their exact values. Chapter 10's
// dequantize.hpp describes the way back and the order of the bits in a block. These are the
// formulas of the GGUF format's reference; halfway between two q, Q4_0 and Q4_1 round up, and Q8_0
// away from 0. Blocks of 256, whose scales are rounded too, are in k_quantize.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "10_pretrained/file/dequantize.hpp"
#include "tensor.hpp"

namespace t2t {

/// The F16 nearest to value; halfway between two, the even one. Infinite from 65,520 on.
std::uint16_t float_to_half(float value);

/// Rounds rows to blocks of a type: Q8_0, Q4_0, Q4_1, Q4_K or Q6_K. The bytes are as in a GGUF
/// file. Throws std::invalid_argument for another type, for rows that are not whole blocks, and for
/// a weight that is not finite.
std::vector<std::uint8_t> quantize_rows(TensorType type, ConstMatrix x);  // [T, C]

}  // namespace t2t
