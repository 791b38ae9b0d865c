#include "12_quantization/formats/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "12_quantization/formats/k_quantize.hpp"
#include "12_quantization/packed/stored_scale.hpp"
#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

std::uint16_t float_to_half(float value) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  if (std::isnan(value)) return std::uint16_t(sign | 0x7e00u);
  const double size = std::abs(double(value));
  if (size >= 65520) return std::uint16_t(sign | 0x7c00u);
  if (size == 0) return std::uint16_t(sign);
  // F16s of one exponent are 2^(exponent - 10) apart; below 2^-14 all are 2^-24 apart. A count of
  // 2048 steps is the first F16 of the next exponent, and the carry makes just that.
  const int exponent = std::max(std::ilogb(size), -14);
  const auto steps = unsigned(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return std::uint16_t(sign | ((unsigned(exponent + 14) << 10) + steps));
}

namespace {

void round_to_q8_0(ConstRow x, std::uint8_t* to) {
  const auto sizes = [](float a, float b) { return std::abs(a) < std::abs(b); };
  const float scale = std::abs(*std::ranges::max_element(x, sizes)) / 127;
  const float steps = inverse(scale);
  put_half(scale, to);
  to += 2;
  for (const float value : x) *to++ = std::uint8_t(int(std::round(value * steps)));
}

int nibble(float x) { return std::min(int(x + 0.5f), 15); }

/// 32 integers of 4 bits in 16 bytes: i in the low half of byte i, and 16 + i in its high half.
void put_nibbles(const int* q, std::uint8_t* to) {
  for (std::size_t i = 0; i < 16; ++i)
    to[i] = std::uint8_t(q[2 * i] + 16 * q[2 * i + 1]);  // WRONG
}

void round_to_q4_0(ConstRow x, std::uint8_t* to) {
  float largest = x[0];
  for (const float value : x)
    if (std::abs(value) > std::abs(largest)) largest = value;
  const float scale = largest / -8, steps = inverse(scale);
  int q[32];
  std::ranges::transform(x, q, [steps](float value) { return nibble(value * steps + 8); });
  put_half(scale, to);
  put_nibbles(q, to + 2);
}

void round_to_q4_1(ConstRow x, std::uint8_t* to) {
  const auto [lowest, highest] = std::ranges::minmax(x);
  const float minimum = lowest, scale = (highest - lowest) / 15, steps = inverse(scale);
  int q[32];
  std::ranges::transform(x, q, [=](float value) { return nibble((value - minimum) * steps); });
  put_half(scale, to);
  put_half(minimum, to + 2);
  put_nibbles(q, to + 4);
}

using RoundBlock = void (*)(ConstRow, std::uint8_t*);

RoundBlock block_rounder(TensorType type) {
  if (type == TensorType::q8_0) return round_to_q8_0;
  if (type == TensorType::q4_0) return round_to_q4_0;
  if (type == TensorType::q4_1) return round_to_q4_1;
  if (type == TensorType::q4_k) return to_q4_k;
  if (type == TensorType::q6_k) return to_q6_k;
  throw std::invalid_argument(
      fmt::format("type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got {}", type_name(type)));
}

}  // namespace

std::vector<std::uint8_t> quantize_rows(TensorType type, ConstMatrix x) {
  const RoundBlock round_block = block_rounder(type);
  const auto [numbers, size] = block_layout(type);
  expect(x.cols % numbers == 0, "columns", fmt::format("whole blocks of {}", numbers), x.cols);
  for (std::size_t t = 0; t < x.rows; ++t)
    for (const float value : x.row(t))
      if (!std::isfinite(value)) refuse("x", "finite numbers", value);

  const std::size_t blocks_of_row = x.cols / numbers, width = numbers, bytes_of_block = size;
  std::vector<std::uint8_t> stored(x.rows * blocks_of_row * bytes_of_block);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    std::uint8_t* to = stored.data() + t * blocks_of_row * bytes_of_block;
    for (std::size_t b = 0; b < blocks_of_row; ++b, to += bytes_of_block)
      round_block(x.row(t).subspan(b * width, width), to);
  });
  return stored;
}

}  // namespace t2t
