// The types whose blocks are 256 numbers. A block has one scale as an F16, and each 32 of its
// numbers (of Q6_K, each 16) have a whole number s of few bits by which it is multiplied. Minima
// are kept likewise: one as an F16, times m of each 32. The formulas stand in dequantize.hpp.
//
// Q4_K  scale, minimum, 12 bytes of s and m, 128 bytes of q
// Q5_K  scale, minimum, 12 bytes of s and m, 32 bytes with the fifth bits of q, 128 bytes of q
// Q6_K  128 bytes with the lower 4 bits of q, 64 with the upper 2, 16 bytes of s, scale
//
// 4 bits of q: the low halves of 32 bytes (64 of Q6_K) serve as many numbers, their high halves the
// next ones. Fifth bits: bit j of byte i is that of number 32·j + i. Q6_K's upper bits: of each 128
// numbers, 32·j + i has bits 2·j and 2·j + 1 of byte i.
//
// The 12 bytes hold 8 s and 8 m of six bits each. From the highest bit to the lowest, where S and M
// are those of numbers 0 to 127, s and m those of numbers 128 to 255:
//
//   bytes 0 … 3    s s S S S S S S      the upper 2 bits of an s, and a whole S
//   bytes 4 … 7    m m M M M M M M
//   bytes 8 … 11   m m m m s s s s      the lower 4 bits of both
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace t2t {

/// to.size() / 256 blocks, one after the other, to float.
void from_q4_k(const std::uint8_t* from, Row to);
void from_q5_k(const std::uint8_t* from, Row to);
void from_q6_k(const std::uint8_t* from, Row to);

}  // namespace t2t
