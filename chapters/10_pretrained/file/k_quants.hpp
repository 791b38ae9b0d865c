// The types with blocks of 256 weights. A block has one scale as an F16; each 32 of its weights (16
// in Q6_K) share an integer s of a few bits, and their scale is the product of both. Minima are
// stored the same way: an F16 for the block, times m for each 32 weights. The formulas are in
// dequantize.hpp.
//
// Q4_K  scale, minimum, 12 bytes of s and m, 128 bytes of q
// Q5_K  scale, minimum, 12 bytes of s and m, 32 bytes with the fifth bits of q, 128 bytes of q
// Q6_K  128 bytes with the lower 4 bits of q, 64 with the upper 2, 16 bytes of s, scale
//
// The lower 4 bits of q: the low halves of 32 bytes (64 in Q6_K) belong to as many weights, the
// high halves to the next ones. The fifth bit of weight 32·j + i is bit j of byte i. In Q6_K, among
// each 128 weights, weight 32·j + i has bits 2·j and 2·j + 1 of byte i as its upper bits.
//
// The 12 bytes hold 8 s and 8 m of six bits each. From the highest bit to the lowest, where S and M
// belong to weights 0 to 127, s and m to weights 128 to 255:
//
//   bytes 0 … 3    s s S S S S S S      the upper 2 bits of an s, and a whole S
//   bytes 4 … 7    m m M M M M M M
//   bytes 8 … 11   m m m m s s s s      the lower 4 bits of both
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace t2t {

struct ScaleAndMinimum {
  int s, m;
};
/// s and m of weights 32·j … 32·j + 31 of a block, from the 12 bytes that hold them all.
ScaleAndMinimum scale_and_minimum(const std::uint8_t* bytes, std::size_t j);

/// Dequantize to.size() / 256 blocks that lie one after the other.
void from_q4_k(const std::uint8_t* from, Row to);
void from_q5_k(const std::uint8_t* from, Row to);
void from_q6_k(const std::uint8_t* from, Row to);

}  // namespace t2t
