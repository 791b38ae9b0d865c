#include "10_pretrained/file/dequantize.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

#include "10_pretrained/file/k_quants.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

static std::uint16_t bits_at(const std::uint8_t* bytes) {
  std::uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  return bits;
}

/// Moving an F16's exponent and fraction to a float's places gives a number 2^112 too small, since
/// exponents are stored plus 15 in an F16 and plus 127 in a float. One exact product corrects it,
/// also for subnormal numbers. Infinity and NaN have all bits of the exponent set, which are set
/// again here.
float half_to_float(std::uint16_t bits) {
  const std::uint32_t magnitude = std::uint32_t(bits & 0x7fff) << 13;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t infinite = (bits & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
  const std::uint32_t sign = std::uint32_t(bits & 0x8000) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | infinite | sign);
}

float half_at(const std::uint8_t* bytes) { return half_to_float(bits_at(bytes)); }

static void from_f32(const std::uint8_t* from, Row to) {
  std::memcpy(to.data(), from, to.size_bytes());
}

static void from_f16(const std::uint8_t* from, Row to) {
#pragma omp simd
  for (std::size_t c = 0; c < to.size(); ++c) to[c] = half_at(from + 2 * c);
}

static void from_bf16(const std::uint8_t* from, Row to) {
#pragma omp simd
  for (std::size_t c = 0; c < to.size(); ++c)
    to[c] = std::bit_cast<float>(std::uint32_t(bits_at(from + 2 * c)) << 16);
}

static void from_q8_0(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 34) {
    const float scale = half_at(block);
#pragma omp simd
    for (std::size_t i = 0; i < 32; ++i)
      to[c + i] = scale * float(static_cast<std::int8_t>(block[2 + i]));
  }
}

static void from_q4_0(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 18) {
    const float scale = half_at(block);
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * float((block[2 + i] & 0xf) - 8);
      to[c + 16 + i] = scale * float((block[2 + i] >> 4) - 8);
    }
  }
}

static void from_q4_1(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 20) {
    const float scale = half_at(block);
    const float minimum = half_at(block + 2);
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * float(block[4 + i] & 0xf) + minimum;
      to[c + 16 + i] = scale * float(block[4 + i] >> 4) + minimum;
    }
  }
}

/// 4 bits and, above them, the lowest bit of fifth.
static float five_bits(int lower, std::uint32_t fifth) {
  return float(lower | int(fifth & 1) << 4);
}

static void from_q5_0(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 22) {
    const float scale = half_at(block);
    std::uint32_t fifth;
    std::memcpy(&fifth, block + 2, 4);
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * (five_bits(block[6 + i] & 0xf, fifth >> i) - 16);
      to[c + 16 + i] = scale * (five_bits(block[6 + i] >> 4, fifth >> (16 + i)) - 16);
    }
  }
}

static void from_q5_1(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 32, block += 24) {
    const float scale = half_at(block), minimum = half_at(block + 2);
    std::uint32_t fifth;
    std::memcpy(&fifth, block + 4, 4);
#pragma omp simd
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = scale * five_bits(block[8 + i] & 0xf, fifth >> i) + minimum;
      to[c + 16 + i] = scale * five_bits(block[8 + i] >> 4, fifth >> (16 + i)) + minimum;
    }
  }
}

namespace {
struct TypeRow {
  const char* name = "";
  BlockLayout block = {0, 0};
  void (*from_blocks)(const std::uint8_t* from, Row to) = nullptr;  // none: not read here
};
}  // namespace

/// The index of a type is its number in a file; 4, 5 and 31 to 38 have no name here.
static constexpr TypeRow types[] = {
    {"F32", {1, 4}, from_f32},
    {"F16", {1, 2}, from_f16},
    {"Q4_0", {32, 2 + 16}, from_q4_0},
    {"Q4_1", {32, 2 + 2 + 16}, from_q4_1},
    {},
    {},
    {"Q5_0", {32, 2 + 4 + 16}, from_q5_0},
    {"Q5_1", {32, 2 + 2 + 4 + 16}, from_q5_1},
    {"Q8_0", {32, 2 + 32}, from_q8_0},
    {"Q8_1"},
    {"Q2_K"},
    {"Q3_K"},
    {"Q4_K", {256, 2 + 2 + 12 + 128}, from_q4_k},
    {"Q5_K", {256, 2 + 2 + 12 + 32 + 128}, from_q5_k},
    {"Q6_K", {256, 128 + 64 + 16 + 2}, from_q6_k},
    {"Q8_K"},
    {"IQ2_XXS"},
    {"IQ2_XS"},
    {"IQ3_XXS"},
    {"IQ1_S"},
    {"IQ4_NL"},
    {"IQ3_S"},
    {"IQ2_S"},
    {"IQ4_XS"},
    {"I8"},
    {"I16"},
    {"I32"},
    {"I64"},
    {"F64"},
    {"IQ1_M"},
    {"BF16", {1, 2}, from_bf16},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {},
    {"MXFP4", {32, 1 + 16}},
};

static TypeRow row_of(TensorType type) {
  const std::size_t number = std::size_t(type);
  return number < std::size(types) ? types[number] : TypeRow();
}

BlockLayout block_layout(TensorType type) { return row_of(type).block; }

std::string type_name(TensorType type) {
  const std::string name = row_of(type).name;
  return name.empty() ? fmt::format("type {}", std::size_t(type)) : name;
}

std::string types_read_here() {
  std::vector<std::string_view> names;
  for (const TypeRow& type : types)
    if (type.from_blocks) names.push_back(type.name);
  return fmt::format("one of {}", fmt::join(names, ", "));
}

void dequantize_rows(TensorType type, std::span<const std::uint8_t> bytes, Matrix to) {
  const TypeRow row = row_of(type);
  const BlockLayout block = row.block;
  if (!row.from_blocks) refuse("tensor type", types_read_here(), double(type));
  if (to.cols % block.numbers != 0)
    refuse("columns", fmt::format("whole blocks of {}", block.numbers), to.cols);
  const std::size_t row_bytes = to.cols / block.numbers * block.bytes;
  if (bytes.size() != to.rows * row_bytes)
    refuse("bytes", fmt::format("{} for {} rows", to.rows * row_bytes, to.rows), bytes.size());

  for_each_row(to.rows, to.cols,
               [&](std::size_t t) { row.from_blocks(bytes.data() + t * row_bytes, to.row(t)); });
}

}  // namespace t2t
