// What all formats do with a scale: it is stored as an F16, and weights are divided by it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "12_quantization/formats/quantize.hpp"

namespace t2t {

inline void put_half(float value, std::uint8_t* to) {
  const std::uint16_t bits = float_to_half(value);
  std::memcpy(to, &bits, 2);
}

/// 1 / x, or 0 for a block of equal values, whose scale is 0 or nearly so: 1 / x could be infinite.
inline float inverse(float x) { return std::abs(x) < 1e-30f ? 0 : 1 / x; }

}  // namespace t2t
