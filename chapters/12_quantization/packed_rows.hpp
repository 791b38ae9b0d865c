// Quantized weights in an order that vector registers can read: 16 rows together.
//
// A product with one token is a dot product for each row. If a register held 64 numbers of one row,
// its lanes would have to be added up at the end of each block. Instead it holds 4 numbers of each
// of 16 rows: lane r belongs to row r, and the sums of 16 rows grow side by side. A group of 16
// rows is stored block by block, and a block, 32 numbers of each row, as
//
//   16 scales (F16), 16 minima (F16, if the type has them), then the q, without a sign:
//
//   4 bits: byte 64·j + 4·r + i, for j < 4, holds q of row r's number 4·j + i in its low half, and
//   in its high half that of number 16 + 4·j + i.
//
//   8 bits: byte 64·j + 4·r + i, for j < 8, holds q + 128 of row r's number 4·j + i.
//
// The size is that of the stored blocks. Missing rows of the last group are zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "10_pretrained/dequantize.hpp"
#include "tensor.hpp"

namespace t2t {

constexpr std::size_t rows_of_group = 16, block_numbers = 32;

/// value = scale · (q − offset) + minimum
struct PackedForm {
  std::size_t bits;  // of a q: 4 or 8
  int offset;        // what is subtracted from a q
  bool has_minimum;

  constexpr std::size_t head_bytes() const { return rows_of_group * (has_minimum ? 4 : 2); }
  constexpr std::size_t block_bytes() const {  // of 16 rows
    return head_bytes() + rows_of_group * block_numbers * bits / 8;
  }
  bool operator==(const PackedForm&) const = default;
};
constexpr PackedForm form_q8_0 = {8, 128, false}, form_q4_0 = {4, 8, false},
                     form_q4_1 = {4, 0, true};

/// The form of a type's blocks; nothing for a type that is not packed.
std::optional<PackedForm> packed_form(TensorType type);

struct PackedRows {
  PackedForm form;
  std::size_t rows, cols;
  std::vector<std::uint8_t> bytes;

  std::size_t groups() const { return (rows + rows_of_group - 1) / rows_of_group; }
  std::size_t blocks() const { return cols / block_numbers; }
  const std::uint8_t* block(std::size_t group, std::size_t b) const {
    return bytes.data() + (group * blocks() + b) * form.block_bytes();
  }
};

/// Stored blocks of Q8_0, Q4_0 or Q4_1 in this order. Throws std::invalid_argument for another
/// type, and unless cols is whole blocks and `stored` has exactly the size of all rows.
PackedRows pack_rows(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                     std::size_t cols);

/// Row r as floats: the numbers that dequantizing the stored blocks gives, to the last bit.
void unpack_row(const PackedRows& packed, std::size_t r, Row to);  // [cols]

}  // namespace t2t
