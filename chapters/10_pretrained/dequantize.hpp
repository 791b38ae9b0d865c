// Stored weights as floats: most types are whole numbers of few bits, times a scale that a block of
// them shares.
//
//   F32   as it is
//   F16   5 bits of exponent, 10 of fraction
//   BF16  the upper half of an F32
//   Q8_0  value = scale · q,                    q in −128 … 127
//   Q4_0  value = scale · (q − 8),              q in 0 … 15
//   Q4_1  value = scale · q + minimum,          q in 0 … 15
//   Q5_0  value = scale · (q − 16),             q in 0 … 31
//   Q5_1  value = scale · q + minimum,          q in 0 … 31
//   Q4_K  value = scale · s · q − minimum · m,  q in 0 … 15; s, m in 0 … 63, a pair for 32 numbers
//   Q5_K  value = scale · s · q − minimum · m,  q in 0 … 31; s, m in 0 … 63, a pair for 32 numbers
//   Q6_K  value = scale · s · (q − 32),         q in 0 … 63; s in −128 … 127, one for 16 numbers
//
// A block of 32 is its scale, its minimum if it has one, both F16, then the q. Q8_0's q are signed
// bytes, in order. A 4-bit block holds q of numbers 0 … 15 in the low halves of its 16 bytes, of
// 16 … 31 in the high halves. A 5-bit block has the same 16 bytes, and before them 32 bits of which
// bit i is the highest of number i's q, worth 16. Blocks of 256 (the types with a K) are described
// in k_quants.hpp. All numbers are little-endian. Other types of the format are refused by
// gguf.hpp, by name. Chapter 12 computes with such blocks as they are; here they become the block's
// float matrices.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor.hpp"

namespace t2t {

/// With the numbers that stand for them in a file.
enum class TensorType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  bf16 = 30
};

/// The numbers and the bytes of one block; a row is whole blocks. {0, 0} of a type not listed above.
struct BlockLayout {
  std::size_t numbers, bytes;
};
BlockLayout block_layout(TensorType type);

/// "Q4_1"; also of types that are not read here; "type 77" of what nobody has named.
std::string type_name(TensorType type);

/// "one of F32, F16, …": those that are read here.
std::string types_read_here();

/// What 16 bits mean as an F16, in a float, exactly.
float half_to_float(std::uint16_t bits);
/// Of the two bytes that stand there.
float half_at(const std::uint8_t* bytes);

/// Rows of blocks, one after the other, to float, several at once. Throws std::invalid_argument
/// unless there are just as many bytes as the rows need, and a row is whole blocks.
void dequantize_rows(TensorType type, std::span<const std::uint8_t> bytes,
                     Matrix to);  // [rows, cols]

}  // namespace t2t
