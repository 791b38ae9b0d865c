#include "12_quantization/packed/stored_block.hpp"

#include <cstring>

#include "10_pretrained/file/k_quants.hpp"
#include "12_quantization/packed/packed_rows.hpp"

namespace t2t {

static std::uint16_t half_bits(const std::uint8_t* from) {
  std::uint16_t bits;
  std::memcpy(&bits, from, 2);
  return bits;
}

/// The lower 4 bits: those of weights 0 … 15 in the low halves of 16 bytes, then those in the high.
static void read_halves(const std::uint8_t* from, StoredBlock& to) {
  for (std::size_t i = 0; i < 16; ++i) to.q[i] = from[i] & 15, to.q[16 + i] = from[i] >> 4;
}

/// Fifth bits: bit i belongs to weight i.
static void read_fifth_bits(const std::uint8_t* from, StoredBlock& to) {
  for (std::size_t i = 0; i < 32; ++i) to.q[i] |= (from[i / 8] >> i % 8 & 1) << 4;
}

/// Block j of the 8 of a Q4_K or, with fifth bits, of a Q5_K.
static StoredBlock of_q4_k(const std::uint8_t* head, const std::uint8_t* fifth,
                           const std::uint8_t* q, std::size_t j) {
  const auto [s, m] = scale_and_minimum(head + 4, j);
  const std::uint16_t sign = 0x8000;  // the type subtracts its minimum
  StoredBlock block{half_bits(head), std::uint16_t(half_bits(head + 2) ^ sign), {}, {s, s}, m};
  for (std::size_t i = 0; i < 32; ++i) {
    const int high = fifth ? fifth[i] >> j & 1 : 0;
    block.q[i] = std::uint8_t((q[j / 2 * 32 + i] >> j % 2 * 4 & 15) | high << 4);
  }
  return block;
}

/// Block j of the 8 of a Q6_K.
static StoredBlock of_q6_k(const std::uint8_t* stored, std::size_t j) {
  const auto* s = reinterpret_cast<const std::int8_t*>(stored + 192 + 2 * j);
  StoredBlock block{half_bits(stored + 208), 0, {}, {s[0], s[1]}, 0};
  const std::uint8_t* lower = stored + j / 4 * 64 + j % 2 * 32;
  const std::uint8_t* upper = stored + 128 + j / 4 * 32;
  for (std::size_t i = 0; i < 32; ++i) {
    const int low = lower[i] >> j % 4 / 2 * 4 & 15, high = upper[i] >> j % 4 * 2 & 3;
    block.q[i] = std::uint8_t(high << 4 | low);
  }
  return block;
}

StoredBlock stored_block(TensorType type, const std::uint8_t* row, std::size_t b) {
  const BlockLayout layout = block_layout(type);
  const std::uint8_t* at = row + b * block_numbers / layout.numbers * layout.bytes;
  const std::size_t j = b % (layout.numbers / block_numbers);
  if (type == TensorType::q4_k) return of_q4_k(at, nullptr, at + 16, j);
  if (type == TensorType::q5_k) return of_q4_k(at, at + 16, at + 48, j);
  if (type == TensorType::q6_k) return of_q6_k(at, j);

  StoredBlock block{half_bits(at), 0, {}, {1, 1}, 1};
  at += 2;
  if (packed_form(type)->has_minimum) block.minimum = half_bits(at), at += 2;
  if (type == TensorType::q8_0) {
    // As bytes, q + 128 is q with its highest bit turned over.
    for (std::size_t i = 0; i < 32; ++i) block.q[i] = at[i] ^ 0x80;
  } else if (type == TensorType::q5_0 || type == TensorType::q5_1) {
    read_halves(at + 4, block), read_fifth_bits(at, block);
  } else {
    read_halves(at, block);
  }
  return block;
}

}  // namespace t2t
