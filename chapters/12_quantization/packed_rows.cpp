#include "12_quantization/packed_rows.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

std::optional<PackedForm> packed_form(TensorType type) {
  switch (type) {
    case TensorType::q8_0:
      return form_q8_0;
    case TensorType::q4_0:
      return form_q4_0;
    case TensorType::q4_1:
      return form_q4_1;
    default:
      return std::nullopt;
  }
}

/// Puts one stored block of row r, of its group, where it belongs in the group's block.
static void pack_block(const PackedForm& form, const std::uint8_t* stored, std::size_t r,
                       std::uint8_t* to) {
  std::memcpy(to + 2 * r, stored, 2);
  if (form.has_minimum) std::memcpy(to + 2 * (rows_of_group + r), stored + 2, 2);
  const std::uint8_t* q = stored + (form.has_minimum ? 4 : 2);
  to += form.head_bytes() + 4 * r;
  const std::uint8_t sign = form.bits == 8 ? 0x80 : 0;  // as unsigned bytes, q + 128 is q with its
  for (std::size_t n = 0; n < block_numbers * form.bits / 8; ++n)  // highest bit turned over
    to[n / 4 * 64 + n % 4] = q[n] ^ sign;
}

PackedRows pack_rows(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                     std::size_t cols) {
  const std::optional<PackedForm> form = packed_form(type);
  if (!form)
    throw std::invalid_argument(
        fmt::format("type: wanted Q8_0, Q4_0 or Q4_1, got {}", type_name(type)));
  PackedRows packed{*form, rows, cols, {}};
  const std::size_t bytes = block_layout(type).bytes;
  expect(cols % block_numbers == 0, "columns", "whole blocks of 32", double(cols));
  if (stored.size() != rows * packed.blocks() * bytes)
    expect(false, "bytes", fmt::format("{} for {} rows", rows * packed.blocks() * bytes, rows),
           double(stored.size()));
  packed.bytes.resize(packed.groups() * packed.blocks() * packed.form.block_bytes());
  for_each_row(packed.groups(), rows_of_group * cols, [&](std::size_t group) {
    const std::size_t first = group * rows_of_group, count = std::min(rows_of_group, rows - first);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t b = 0; b < packed.blocks(); ++b)
        pack_block(packed.form, &stored[((first + r) * packed.blocks() + b) * bytes], r,
                   const_cast<std::uint8_t*>(packed.block(group, b)));
  });
  return packed;
}

void unpack_row(const PackedRows& packed, std::size_t r, Row to) {
  const PackedForm& form = packed.form;
  const std::size_t lane = r % rows_of_group;
  for (std::size_t b = 0; b < packed.blocks(); ++b) {
    const std::uint8_t* block = packed.block(r / rows_of_group, b);
    const float scale = half_at(block + 2 * lane);
    const float minimum = form.has_minimum ? half_at(block + 2 * (rows_of_group + lane)) : 0;
    const std::uint8_t* q = block + form.head_bytes() + 4 * lane;
    for (std::size_t n = 0; n < block_numbers; ++n) {
      const std::size_t byte = form.bits == 8 ? n : n % 16;
      const int bits = q[byte / 4 * 64 + byte % 4];
      const int number = form.bits == 8 ? bits : n < 16 ? bits & 15 : bits >> 4;
      to[block_numbers * b + n] = scale * float(number - form.offset) + minimum;
    }
  }
}

}  // namespace t2t
