// The two 16-bit floats, with CUDA's names, sizes and rounding: to nearest, ties to even; a NaN
// becomes 0x7fff.
//
//   bfloat16   1 sign, 8 exponent, 7 mantissa bits: the upper half of a float; 2 to 3 digits
//   half       1 sign, 5 exponent, 10 mantissa bits: 6.1e-5 to 65504 normal, steps of 2^-24 below
#pragma once

#include <bit>
#include <cstdint>

struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};

struct alignas(2) __half {
  std::uint16_t bits;
};

inline float __bfloat162float(__nv_bfloat16 x) {
  return std::bit_cast<float>(std::uint32_t{x.bits} << 16);
}

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {0x7fff};
  // Adds just under half a step, or exactly half where the kept part is odd: ties go to even.
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
inline __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }

inline float __half2float(__half x) {
  const std::uint32_t sign = std::uint32_t{x.bits} >> 15 << 31;
  const std::uint32_t exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
  // Below the normal numbers the mantissa counts steps of 2^-24; the top exponent means inf or NaN.
  const float size =
      exponent == 0
          ? static_cast<float>(mantissa) * 0x1p-24f
          : std::bit_cast<float>((exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
}

inline __half __float2half_rn(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 31 << 15, size = bits & 0x7fffffff;
  if (size > 0x7f800000) return {0x7fff};
  std::uint32_t rounded = 0;
  if (size >= 0x477ff000) {  // from 65520 on, halfway to 2^16: infinity
    rounded = 0x7c00;
  } else if (size < 0x38800000) {  // below 2^-14: beside 0.5 a float's steps are 2^-24 too
    rounded = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
  } else {
    rounded = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
  }
  return {static_cast<std::uint16_t>(sign | rounded)};
}
inline __half __float2half(float x) { return __float2half_rn(x); }
