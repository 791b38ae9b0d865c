// Numbers rounded to few bits, in blocks of 32 that share a scale, and some of them a minimum.
//
//   Q8_0   scale = max |x| / 127                    q = round(x / scale)                −127 … 127
//   Q4_0   scale = x / −8 for the x of largest |x|  q = round(x / scale) + 8            0 … 15
//   Q4_1   minimum = min x, scale = (max x − minimum) / 15
//                                                   q = round((x − minimum) / scale)    0 … 15
//
// Scale and minimum are stored as F16, but q is computed with their exact values. Chapter 10's
// dequantize.hpp has the way back and the order of the bits in a block. These are the formulas of
// the GGUF format's reference; several numbers at the same distance between two q go up in Q4_0 and
// Q4_1, and away from 0 in Q8_0. Blocks of 256, whose scales are rounded too, are in
// k_quantize.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "10_pretrained/file/dequantize.hpp"
#include "tensor.hpp"

namespace t2t {

/// The F16 nearest to value; of two at the same distance the even one. Infinite from 65,520 on.
std::uint16_t float_to_half(float value);

/// Rounds rows to blocks of a type: Q8_0, Q4_0, Q4_1, Q4_K or Q6_K. The bytes are those that a GGUF
/// file has. Throws std::invalid_argument for another type, for rows that are not whole blocks, and
/// for a number that is not finite.
std::vector<std::uint8_t> quantize_rows(TensorType type, ConstMatrix x);  // [T, C]

}  // namespace t2t
