// Quantized weights in an order for vector registers: 16 rows together.
//
// A product with one token is a dot product for each row. If a register held 64 weights of one row,
// each block of each row would need its own product with a scale, and the lanes would have to be
// added up at the end. Instead it holds 4 weights of each of 16 rows: lane r belongs to row r, and
// the sums of 16 rows grow side by side. A group of 16 rows is stored block by block, and a block,
// 32 weights of each row, as
//
//   16 scales (F16), 16 minima (F16, if the type has them), then the q, unsigned:
//
//   8 bits: byte 64·j + 4·r + i, for j < 8, holds q + 128 of row r's weight 4·j + i.
//
//   4 bits: byte 64·j + 4·r + i, for j < 4, holds q of row r's weight 4·j + i in its low half, and
//   in its high half q of weight 16 + 4·j + i.
//
//   5 and 6 bits: the lower 4 bits as above. One or two times 64 bytes follow with the bits that
//   are left, B = 1 or 2 per weight: of weight 4·j + i of row r they are bits B·j to B·j + B − 1
//   of all bits at 4·r + i, where bit 8 is the lowest of the byte 64 further on.
//
// Of the types with two levels, 8 blocks follow one head of 16 scales and 16 minima. Each block
// begins with the integers, a byte each, by which these are multiplied: 16 for the scales and
// 16 for the minima, or in Q6_K 16 for the scales of its first 16 weights and 16 for the others.
//
// The size is that of the stored blocks, or a little more where there are two levels. Missing rows
// of the last group are zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "10_pretrained/file/dequantize.hpp"
#include "tensor.hpp"

namespace t2t {

constexpr std::size_t rows_of_group = 16, block_numbers = 32;

/// value = scale · (q − offset) + minimum
struct PackedForm {
  std::size_t bits;  // of a q: 4, 5, 6 or 8
  int offset;        // subtracted from a q
  bool has_minimum;
  bool two_levels = false;    // scale = scale of 8 blocks · integer; minimum likewise
  bool scale_for_16 = false;  // each half of a block has an integer, from −128 on

  constexpr std::size_t blocks_of_head() const { return two_levels ? 8 : 1; }
  constexpr std::size_t head_bytes() const { return rows_of_group * (has_minimum ? 4 : 2); }
  constexpr std::size_t level_bytes() const {  // the integers of a block
    return two_levels ? rows_of_group * 2 : 0;
  }
  constexpr std::size_t block_bytes() const {  // of 16 rows, without the head
    return level_bytes() + rows_of_group * block_numbers * bits / 8;
  }
  /// Where the head of block b lies, and where the block, counting blocks through all groups.
  constexpr std::size_t head(std::size_t b) const {
    return b / blocks_of_head() * (head_bytes() + blocks_of_head() * block_bytes());
  }
  constexpr std::size_t block(std::size_t b) const {
    return head(b) + head_bytes() + b % blocks_of_head() * block_bytes();
  }
  bool operator==(const PackedForm&) const = default;
};
constexpr PackedForm form_q8_0 = {8, 128, false}, form_q4_0 = {4, 8, false},
                     form_q4_1 = {4, 0, true}, form_q5_0 = {5, 16, false}, form_q5_1 = {5, 0, true},
                     form_q4_k = {4, 0, true, true}, form_q5_k = {5, 0, true, true},
                     form_q6_k = {6, 32, false, true, true};

/// The form of a type's blocks; nothing for a type that is not packed.
std::optional<PackedForm> packed_form(TensorType type);

struct PackedRows {
  PackedForm form;
  std::size_t rows, cols;
  std::vector<std::uint8_t> bytes;

  std::size_t groups() const { return (rows + rows_of_group - 1) / rows_of_group; }
  std::size_t blocks() const { return cols / block_numbers; }
  /// Where block b of a group lies, and the head that it belongs to.
  std::size_t head(std::size_t group, std::size_t b) const {
    return form.head(group * blocks() + b);
  }
  std::size_t block(std::size_t group, std::size_t b) const {
    return form.block(group * blocks() + b);
  }
};

/// Stored blocks of a type with such a form in this order. Throws std::invalid_argument for another
/// type, and unless cols is whole blocks and `stored` has exactly the size of all rows.
PackedRows pack_rows(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                     std::size_t cols);

/// Row r as floats: the values from dequantizing the stored blocks, to the last bit.
void unpack_row(const PackedRows& packed, std::size_t r, Row to);  // [cols]

}  // namespace t2t
