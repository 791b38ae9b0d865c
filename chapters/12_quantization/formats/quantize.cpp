#include "12_quantization/formats/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "12_quantization/formats/k_quantize.hpp"
#include "12_quantization/packed/stored_scale.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000, size = bits & 0x7fffffff;
  const float positive = std::bit_cast<float>(size);
  if (std::isnan(value)) return std::uint16_t(sign | 0x7e00);
  if (positive >= 65520) return std::uint16_t(sign | 0x7c00);  // infinity
  // Below 2^-14 an F16 is a multiple of 2^-24. Adding 1/2 moves the number to where floats are
  // 2^-24 apart. So the addition rounds, and the low bits of the sum are the F16.
  if (positive < 0x1p-14f) {
    const auto rounded = std::bit_cast<std::uint32_t>(positive + 0.5f);
    return std::uint16_t(sign | (rounded - std::bit_cast<std::uint32_t>(0.5f)));
  }
  // Elsewhere 13 bits of the fraction are cut. First 0xfff is added, and 1 more if the lowest bit
  // that stays is set: this rounds to nearest, ties to even. The exponent is stored with 15 added
  // to it, not 127.
  const std::uint32_t rounded = size + 0xfff + ((size >> 13) & 1);
  return std::uint16_t(sign | ((rounded - (112u << 23)) >> 13));
}

/// Byte i gets the q of weight i in its low half, and the q of weight 16 + i in its high half.
template <class Q>
static void put_halves(Q q, std::uint8_t* to) {
  for (std::size_t i = 0; i < 16; ++i) to[i] = std::uint8_t(q(i) | q(16 + i) << 4);
}

/// x rounded to 0 … 15. x is never below −1/2, so cutting the fraction of x + 1/2 rounds it.
static int four_bits(float x) { return std::min(15, int(x + 0.5f)); }

static void to_q8_0(ConstRow x, std::uint8_t* to) {
  float highest = 0;
  for (const float value : x) highest = std::max(highest, std::abs(value));
  const float scale = highest / 127, per_step = inverse(scale);
  put_half(scale, to);
  for (std::size_t i = 0; i < 32; ++i)
    to[2 + i] = std::uint8_t(std::int8_t(std::round(x[i] * per_step)));
}

static void to_q4_0(ConstRow x, std::uint8_t* to) {
  const auto by_size = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const float scale = *std::ranges::max_element(x, by_size) / -8, per_step = inverse(scale);
  put_half(scale, to);
  put_halves([&](std::size_t i) { return four_bits(x[i] * per_step + 8); }, to + 2);
}

static void to_q4_1(ConstRow x, std::uint8_t* to) {
  const float lowest = std::ranges::min(x), highest = std::ranges::max(x);
  const float scale = (highest - lowest) / 15, per_step = inverse(scale);
  put_half(scale, to);
  put_half(lowest, to + 2);
  put_halves([&](std::size_t i) { return four_bits((x[i] - lowest) * per_step); }, to + 4);
}

static auto rounding_of(TensorType type) {
  switch (type) {
    case TensorType::q8_0:
      return to_q8_0;
    case TensorType::q4_0:
      return to_q4_0;
    case TensorType::q4_1:
      return to_q4_1;
    case TensorType::q4_k:
      return to_q4_k;
    case TensorType::q6_k:
      return to_q6_k;
    default:
      throw std::invalid_argument(
          fmt::format("type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got {}", type_name(type)));
  }
}

std::vector<std::uint8_t> quantize_rows(TensorType type, ConstMatrix x) {
  const auto round = rounding_of(type);
  const BlockLayout block = block_layout(type);
  expect(x.cols % block.numbers == 0, "columns", fmt::format("whole blocks of {}", block.numbers),
         x.cols);
  for (std::size_t t = 0; t < x.rows; ++t)
    for (const float value : x.row(t)) expect(std::isfinite(value), "x", "finite numbers", value);

  const std::size_t blocks = x.cols / block.numbers;
  std::vector<std::uint8_t> bytes(x.rows * blocks * block.bytes);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t b = 0; b < blocks; ++b)
      round(x.row(t).subspan(b * block.numbers, block.numbers),
            &bytes[(t * blocks + b) * block.bytes]);
  });
  return bytes;
}

}  // namespace t2t
