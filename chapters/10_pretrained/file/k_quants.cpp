#include "10_pretrained/file/k_quants.hpp"

#include "10_pretrained/file/dequantize.hpp"

namespace t2t {

ScaleAndMinimum scale_and_minimum(const std::uint8_t* bytes, std::size_t j) {
  if (j < 4) return {bytes[j] & 63, bytes[4 + j] & 63};
  return {(bytes[4 + j] & 15) | bytes[j - 4] >> 6 << 4, bytes[4 + j] >> 4 | bytes[j] >> 6 << 4};
}

/// A block of Q4_K or, with fifth bits, of Q5_K.
static void from_block(const std::uint8_t* head, const std::uint8_t* fifth, const std::uint8_t* q,
                       float* to) {
  const float scale = half_at(head), minimum = half_at(head + 2);
  for (std::size_t j = 0; j < 8; ++j, to += 32) {
    const auto [s, m] = scale_and_minimum(head + 4, j);
    const float step = scale * float(s), lowest = minimum * float(m);
    const std::uint8_t* halves = q + j / 2 * 32;
#pragma omp simd
    for (std::size_t i = 0; i < 32; ++i) {
      const int low = halves[i] >> j % 2 * 4 & 15, high = fifth ? fifth[i] >> j & 1 : 0;
      to[i] = step * float(high << 4 | low) - lowest;
    }
  }
}

void from_q4_k(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 256, block += 144)
    from_block(block, nullptr, block + 16, &to[c]);
}

void from_q5_k(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 256, block += 176)
    from_block(block, block + 16, block + 48, &to[c]);
}

void from_q6_k(const std::uint8_t* block, Row to) {
  for (std::size_t c = 0; c < to.size(); c += 256, block += 210) {
    const float scale = half_at(block + 208);
    for (std::size_t g = 0; g < 16; ++g) {
      const float step = scale * float(static_cast<std::int8_t>(block[192 + g]));
      const std::uint8_t* lower = block + g / 8 * 64 + g % 4 * 16;
      const std::uint8_t* upper = block + 128 + g / 8 * 32 + g % 2 * 16;
      const int low_shift = g % 8 / 4 * 4, high_shift = g % 8 / 2 * 2;
#pragma omp simd
      for (std::size_t i = 0; i < 16; ++i) {
        const int low = lower[i] >> low_shift & 15, high = upper[i] >> high_shift & 3;
        to[c + 16 * g + i] = step * float((high << 4 | low) - 32);
      }
    }
  }
}

}  // namespace t2t
