// Stored weights to floats. Most types store integers of a few bits and a scale for each block.
//
//   F32   as it is
//   F16   5 bits of exponent, 10 of fraction
//   BF16  the upper half of an F32
//   Q8_0  value = scale · q,                    q in −128 … 127
//   Q4_0  value = scale · (q − 8),              q in 0 … 15
//   Q4_1  value = scale · q + minimum,          q in 0 … 15
//   Q5_0  value = scale · (q − 16),             q in 0 … 31
//   Q5_1  value = scale · q + minimum,          q in 0 … 31
//   Q4_K  value = scale · s · q − minimum · m,  q in 0 … 15; s, m in 0 … 63, a pair per 32 weights
//   Q5_K  value = scale · s · q − minimum · m,  q in 0 … 31; s, m in 0 … 63, a pair per 32 weights
//   Q6_K  value = scale · s · (q − 32),         q in 0 … 63; s in −128 … 127, one per 16 weights
//
// A block of 32 weights is stored as its scale, its minimum if the type has one (both F16), then
// the q. The q of Q8_0 are signed bytes, in order. A 4-bit block has 16 bytes: their low halves are
// the q of weights 0 … 15, their high halves the q of weights 16 … 31. A 5-bit block has 32 bits
// before these 16 bytes; bit i is the highest bit of weight i's q, worth 16. Blocks of 256 (types
// with a K) are described in k_quants.hpp. All values are little-endian. gguf.hpp refuses other
// types by name. Here the blocks become float matrices; chapter 12 computes with the stored blocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tensor.hpp"

namespace t2t {

/// The same values as in a file.
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
  bf16 = 30,
  mxfp4 = 39  // its size is known, so that its files open; chapter 25 reads its values
};

/// The weights and bytes of one block; a row is whole blocks. {0, 0} for other types.
struct BlockLayout {
  std::size_t numbers, bytes;
};
BlockLayout block_layout(TensorType type);

/// "Q4_1", also for types that are not read here. In a file, 9 is Q8_1, 10 Q2_K, 11 Q3_K, 15 Q8_K,
/// 16 IQ2_XXS, 17 IQ2_XS, 18 IQ3_XXS, 19 IQ1_S, 20 IQ4_NL, 21 IQ3_S, 22 IQ2_S, 23 IQ4_XS, 24 I8,
/// 25 I16, 26 I32, 27 I64, 28 F64 and 29 IQ1_M. "type 77" for an unknown one.
std::string type_name(TensorType type);

/// "one of F32, F16, …": the types that are read here.
std::string types_read_here();

/// The value of an F16, exactly.
float half_to_float(std::uint16_t bits);
/// The value of the F16 in these two bytes.
float half_at(const std::uint8_t* bytes);

/// Dequantizes rows of blocks that lie one after the other; threads share the rows. Throws
/// std::invalid_argument unless a row is whole blocks and bytes has exactly the size of all rows.
void dequantize_rows(TensorType type, std::span<const std::uint8_t> bytes,
                     Matrix to);  // [rows, cols]

}  // namespace t2t
