#include "25_sinks/mxfp4/mxfp4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

#include "12_quantization/formats/quantize.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// Twice the value of each code, an integer.
static constexpr std::array<std::int8_t, 16> doubled = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};

float fp4_value(std::uint8_t code) {
  const int exponent = code >> 1 & 3, fraction = code & 1;
  // Exponent 0 is subnormal: 0 or ½. Above it, the leading 1 is not stored, and the bias is 1.
  const float size =
      exponent == 0 ? 0.5f * float(fraction) : std::ldexp(1 + 0.5f * float(fraction), exponent - 1);
  return code & 8 ? -size : size;
}

std::uint8_t nearest_fp4(float x) {
  expect(!std::isnan(x), "x", "a number", x);
  const float size = std::abs(x);
  // The middles between neighbouring values. Where the code below is odd, the middle belongs to the
  // code above it.
  constexpr std::array<float, 7> middles = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
  std::uint8_t code = 0;
  while (code < 7 && (size > middles[code] || (size == middles[code] && code % 2 == 1))) ++code;
  return std::uint8_t(code | (std::signbit(x) ? 8 : 0));
}

float e8m0_value(std::uint8_t e) {
  expect(e < 255, "e, the scale's exponent", "0 to 254, since 255 means NaN", e);
  return std::ldexp(1.0f, int(e) - 127);
}

/// The scale's exponent with which the largest weight has 4 to 8 scales.
static std::uint8_t scale_exponent(ConstRow x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  return std::uint8_t(std::max(0, std::ilogb(largest) - 2 + 127));
}

static void pack_block(ConstRow x, std::uint8_t* to) {
  to[0] = scale_exponent(x);
  const float scale = e8m0_value(to[0]);
  for (std::size_t i = 0; i < 16; ++i)
    to[1 + i] = std::uint8_t(nearest_fp4(x[i] / scale) | nearest_fp4(x[16 + i] / scale) << 4);
}

std::vector<std::uint8_t> pack_mxfp4(ConstMatrix x) {
  expect(x.cols % mxfp4_numbers == 0, "columns", "whole blocks of 32", x.cols);
  for (std::size_t t = 0; t < x.rows; ++t)
    for (const float value : x.row(t)) expect(std::isfinite(value), "x", "finite numbers", value);
  const std::size_t blocks = x.cols / mxfp4_numbers;
  std::vector<std::uint8_t> bytes(x.rows * blocks * mxfp4_bytes);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t b = 0; b < blocks; ++b)
      pack_block(x.row(t).subspan(b * mxfp4_numbers, mxfp4_numbers),
                 &bytes[(t * blocks + b) * mxfp4_bytes]);
  });
  return bytes;
}

void expect_mxfp4(std::span<const std::uint8_t> bytes, std::size_t rows, std::size_t cols) {
  expect(cols % mxfp4_numbers == 0, "columns", "whole blocks of 32", cols);
  const std::size_t blocks = cols / mxfp4_numbers, wanted = rows * blocks * mxfp4_bytes;
  if (bytes.size() != wanted)
    refuse("bytes", fmt::format("{} for {} rows", wanted, rows), bytes.size());
  for (std::size_t b = 0; b < rows * blocks; ++b)
    if (bytes[b * mxfp4_bytes] == 255)
      throw std::invalid_argument(
          fmt::format("row {}, block {}: e, the scale's exponent: wanted 0 to 254, since 255 means "
                      "NaN, got 255",
                      b / blocks, b % blocks));
}

void unpack_mxfp4_row(const std::uint8_t* blocks, Row to) {
  for (std::size_t c = 0; c < to.size(); c += mxfp4_numbers, blocks += mxfp4_bytes) {
    const float half = std::ldexp(1.0f, int(blocks[0]) - 128);  // of a scale, since codes doubled
    for (std::size_t i = 0; i < 16; ++i) {
      to[c + i] = half * float(doubled[blocks[1 + i] & 0xf]);
      to[c + 16 + i] = half * float(doubled[blocks[1 + i] >> 4]);
    }
  }
}

void unpack_mxfp4(std::span<const std::uint8_t> bytes, Matrix to) {
  expect_mxfp4(bytes, to.rows, to.cols);
  const std::size_t row_bytes = to.cols / mxfp4_numbers * mxfp4_bytes;
  for_each_row(to.rows, to.cols,
               [&](std::size_t t) { unpack_mxfp4_row(bytes.data() + t * row_bytes, to.row(t)); });
}

std::vector<std::uint8_t> mxfp4_as_q8_0(std::span<const std::uint8_t> bytes, std::size_t rows,
                                        std::size_t cols) {
  expect_mxfp4(bytes, rows, cols);
  constexpr std::size_t q8_0_bytes = 2 + 32;
  const std::size_t blocks = rows * cols / mxfp4_numbers;
  std::vector<std::uint8_t> stored(blocks * q8_0_bytes);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::uint8_t* from = &bytes[b * mxfp4_bytes];
    std::uint8_t* to = &stored[b * q8_0_bytes];
    const auto is_zero = [](std::uint8_t both) { return (both & 0x77) == 0; };  // without signs
    if (std::all_of(from + 1, from + mxfp4_bytes, is_zero)) continue;  // 0 is there already
    expect(from[0] >= 104 && from[0] <= 143, "e, the scale's exponent",
           "104 to 143, whose halves an F16 can hold", from[0]);
    const std::uint16_t scale = float_to_half(std::ldexp(1.0f, int(from[0]) - 128));
    to[0] = std::uint8_t(scale), to[1] = std::uint8_t(scale >> 8);
    for (std::size_t i = 0; i < 16; ++i) {
      to[2 + i] = std::uint8_t(doubled[from[1 + i] & 0xf]);
      to[18 + i] = std::uint8_t(doubled[from[1 + i] >> 4]);
    }
  }
  return stored;
}

}  // namespace t2t
