#include "12_quantization/packed/packed_rows.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "12_quantization/packed/stored_block.hpp"
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
    case TensorType::q5_0:
      return form_q5_0;
    case TensorType::q5_1:
      return form_q5_1;
    case TensorType::q4_k:
      return form_q4_k;
    case TensorType::q5_k:
      return form_q5_k;
    case TensorType::q6_k:
      return form_q6_k;
    default:
      return std::nullopt;
  }
}

/// Where some bits of a q are in a block of 16 rows: in which byte, and from which bit on.
struct BitsOfQ {
  std::size_t byte, shift;
};
/// Where all 8 bits of weight n's q are, or its lower 4.
static BitsOfQ lower_bits(const PackedForm& form, std::size_t r, std::size_t n) {
  const std::size_t at = form.bits == 8 ? n : n % 16;
  return {at / 4 * 64 + 4 * r + at % 4, form.bits == 8 ? 0 : n / 16 * 4};
}
/// Where the fifth bit of weight n's q is, or its fifth and sixth.
static BitsOfQ upper_bits(const PackedForm& form, std::size_t r, std::size_t n) {
  const std::size_t bit = n / 4 * (form.bits - 4);
  return {rows_of_group * 16 + bit / 8 * 64 + 4 * r + n % 4, bit % 8};
}

/// Puts one stored block, that of row r of a group, where it belongs in the group's block.
static void pack_block(const PackedForm& form, const StoredBlock& stored, std::size_t r,
                       std::uint8_t* head, std::uint8_t* to) {
  std::memcpy(head + 2 * r, &stored.scale, 2);
  if (form.has_minimum) std::memcpy(head + 2 * (rows_of_group + r), &stored.minimum, 2);
  if (form.two_levels) {
    to[r] = std::uint8_t(stored.s[0] + (form.scale_for_16 ? 128 : 0));
    to[rows_of_group + r] = std::uint8_t(form.scale_for_16 ? stored.s[1] + 128 : stored.m);
  }
  to += form.level_bytes();
  for (std::size_t n = 0; n < block_numbers; ++n) {
    const BitsOfQ lower = lower_bits(form, r, n), upper = upper_bits(form, r, n);
    const int low = form.bits == 8 ? stored.q[n] : stored.q[n] & 15;
    to[lower.byte] |= std::uint8_t(low << lower.shift);
    if (form.bits == 5 || form.bits == 6)
      to[upper.byte] |= std::uint8_t(stored.q[n] >> 4 << upper.shift);
  }
}

PackedRows pack_rows(TensorType type, std::span<const std::uint8_t> stored, std::size_t rows,
                     std::size_t cols) {
  const std::optional<PackedForm> form = packed_form(type);
  if (!form)
    throw std::invalid_argument(
        fmt::format("type: wanted Q8_0 or another type of blocks, got {}", type_name(type)));
  PackedRows packed{*form, rows, cols, {}};
  const BlockLayout layout = block_layout(type);
  expect(cols % layout.numbers == 0, "columns", fmt::format("whole blocks of {}", layout.numbers),
         cols);
  const std::size_t bytes_of_row = cols / layout.numbers * layout.bytes;
  if (stored.size() != rows * bytes_of_row)
    refuse("bytes", fmt::format("{} for {} rows", rows * bytes_of_row, rows), stored.size());
  packed.bytes.resize(packed.head(packed.groups(), 0));
  for_each_row(packed.groups(), rows_of_group * cols, [&](std::size_t group) {
    const std::size_t first = group * rows_of_group, count = std::min(rows_of_group, rows - first);
    for (std::size_t r = 0; r < count; ++r)
      for (std::size_t b = 0; b < packed.blocks(); ++b)
        pack_block(packed.form, stored_block(type, &stored[(first + r) * bytes_of_row], b), r,
                   &packed.bytes[packed.head(group, b)], &packed.bytes[packed.block(group, b)]);
  });
  return packed;
}

/// Scale and minimum of a half of a block, of row r of its group.
struct ScaleOfHalf {
  float scale, minimum;
};
static ScaleOfHalf scale_of_half(const PackedForm& form, const std::uint8_t* head,
                                 const std::uint8_t* block, std::size_t r, std::size_t half) {
  const float scale = half_at(head + 2 * r);
  const float minimum = form.has_minimum ? half_at(head + 2 * (rows_of_group + r)) : 0;
  if (!form.two_levels) return {scale, minimum};
  if (form.scale_for_16) return {scale * float(block[half * rows_of_group + r] - 128), 0};
  return {scale * float(block[r]), minimum * float(block[rows_of_group + r])};
}

void unpack_row(const PackedRows& packed, std::size_t r, Row to) {
  const PackedForm& form = packed.form;
  const std::size_t group = r / rows_of_group, lane = r % rows_of_group;
  for (std::size_t b = 0; b < packed.blocks(); ++b) {
    const std::uint8_t* head = &packed.bytes[packed.head(group, b)];
    const std::uint8_t* block = &packed.bytes[packed.block(group, b)];
    const std::uint8_t* q = block + form.level_bytes();
    for (std::size_t n = 0; n < block_numbers; ++n) {
      const auto [scale, minimum] = scale_of_half(form, head, block, lane, n / 16);
      const BitsOfQ lower = lower_bits(form, lane, n), upper = upper_bits(form, lane, n);
      int number = form.bits == 8 ? q[lower.byte] : q[lower.byte] >> lower.shift & 15;
      if (form.bits == 5 || form.bits == 6)
        number |= (q[upper.byte] >> upper.shift & ((1 << (form.bits - 4)) - 1)) << 4;
      to[block_numbers * b + n] = scale * float(number - form.offset) + minimum;
    }
  }
}

}  // namespace t2t
