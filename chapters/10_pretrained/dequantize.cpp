#include "10_pretrained/dequantize.hpp"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

BlockLayout block_layout(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return {1, 4};
    case TensorType::f16:
      return {1, 2};
    case TensorType::bf16:
      return {1, 2};
    case TensorType::q8_0:
      return {32, 2 + 32};
    case TensorType::q4_0:
      return {32, 2 + 16};
    case TensorType::q4_1:
      return {32, 2 + 2 + 16};
  }
  return {0, 0};
}

std::string type_name(TensorType type) {
  static constexpr const char* names[] = {
      "F32",     "F16",    "Q4_0",    "Q4_1",  "",       "",      "Q5_0",  "Q5_1",
      "Q8_0",    "Q8_1",   "Q2_K",    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K",  "Q8_K",
      "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S", "IQ2_S", "IQ4_XS",
      "I8",      "I16",    "I32",     "I64",   "F64",    "IQ1_M", "BF16"};
  const std::size_t number = std::size_t(type);
  if (number < std::size(names) && names[number][0] != 0) return names[number];
  return fmt::format("type {}", number);
}

static std::uint16_t bits_at(const std::uint8_t* bytes) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  return bits;
}

/// The F16's exponent and fraction, put where a float has its own, make a number 2^112 too small
/// (the exponents' zeros are 15 and 127): one exact product mends it, for the tiniest as well.
/// Infinity and NaN alone, with all bits of the exponent set, need theirs set again.
float half_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = std::uint32_t(bits & 0x7fff) << 13;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t infinite = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
  const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | infinite | sign);
}

static void from_f32(const std::uint8_t* from, Row to) {
  std::memcpy(to.data(), from, to.size_bytes());
}

static void from_f16(const std::uint8_t* from, Row to) {
#pragma omp simd
  for (std::size_t c = 0; c < to.size(); ++c) to[c] = half_to_float(bits_at(from + 2 * c));
}

static void from_bf16(const std::uint8_t* from, Row to) {
#pragma omp simd
  for (std::size_t c = 0; c < to.size(); ++c)
    to[c] = std::bit_cast<float>(std::uint32_t(bits_at(from + 2 * c)) << 16);
}

static void from_q8_0(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 34) {
    const float scale = half_to_float(bits_at(block));
#pragma omp simd
    for (std::size_t i = 0; i < 32; ++i)
      to[c + i] = scale * float(static_cast<std::int8_t>(block[2 + i]));
  }
}

static void from_q4_0(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 18) {
    const float scale = half_to_float(bits_at(block));
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * float((block[2 + i] & 0xf) - 8);
      to[c + 16 + i] = scale * float((block[2 + i] >> 4) - 8);
    }
  }
}

static void from_q4_1(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 20) {
    const float scale = half_to_float(bits_at(block));
    const float minimum = half_to_float(bits_at(block + 2));
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * float(block[4 + i] & 0xf) + minimum;
      to[c + 16 + i] = scale * float(block[4 + i] >> 4) + minimum;
    }
  }
}

using FromBlocks = void (*)(const std::uint8_t* from, Row to);
static FromBlocks from_blocks(TensorType type) {
  switch (type) {
    case TensorType::f32:
      return from_f32;
    case TensorType::f16:
      return from_f16;
    case TensorType::bf16:
      return from_bf16;
    case TensorType::q8_0:
      return from_q8_0;
    case TensorType::q4_0:
      return from_q4_0;
    case TensorType::q4_1:
      return from_q4_1;
  }
  return nullptr;
}

void dequantize_rows(TensorType type, std::span<const std::uint8_t> bytes, Matrix to) {
  const BlockLayout block = block_layout(type);
  expect(block.numbers > 0, "tensor type", "F32, F16, BF16, Q8_0, Q4_0 or Q4_1", double(type));
  if (to.cols % block.numbers != 0)
    expect(false, "columns", fmt::format("whole blocks of {}", block.numbers), double(to.cols));
  const std::size_t row_bytes = to.cols / block.numbers * block.bytes;
  if (bytes.size() != to.rows * row_bytes)
    expect(false, "bytes", fmt::format("{} for {} rows", to.rows * row_bytes, to.rows),
           double(bytes.size()));

  const FromBlocks from = from_blocks(type);
  for_each_row(to.rows, to.cols,
               [&](std::size_t t) { from(bytes.data() + t * row_bytes, to.row(t)); });
}

}  // namespace t2t
