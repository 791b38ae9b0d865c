// Stored weights as floats: whole numbers of few bits, times a scale that a block of 32 shares.
//
//   F32   as it is
//   F16   5 bits of exponent, 10 of fraction
//   BF16  the upper half of an F32
//   Q8_0  value = scale · q,             q in −128 … 127
//   Q4_0  value = scale · (q − 8),       q in 0 … 15
//   Q4_1  value = scale · q + minimum,   q in 0 … 15
//
// A block is its scale, its minimum if it has one, both F16, then the q. A 4-bit block holds q of
// numbers 0 … 15 in the low halves of its 16 bytes, of 16 … 31 in the high halves. Of all numbers
// the least byte comes first. Other types of the format are refused by gguf.hpp, by name. Chapter
// 12 computes with such blocks as they are; here they become the block's float matrices.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor.hpp"

namespace t2t {

/// With the numbers that stand for them in a file.
enum class TensorType : std::uint32_t { f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q8_0 = 8, bf16 = 30 };

/// So many numbers take so many bytes; a row is whole blocks. {0, 0} of a type not listed above.
struct BlockLayout {
  std::size_t numbers, bytes;
};
BlockLayout block_layout(TensorType type);

/// "Q4_1"; also of types that are not read here; "type 77" of what nobody has named.
std::string type_name(TensorType type);

/// What 16 bits mean as an F16, in a float, exactly.
float half_to_float(std::uint16_t bits);

/// Rows of blocks, one after the other, to float, several at once. Throws std::invalid_argument
/// unless there are just as many bytes as the rows need, and a row is whole blocks.
void dequantize_rows(TensorType type, std::span<const std::uint8_t> bytes,
                     Matrix to);  // [rows, cols]

}  // namespace t2t
