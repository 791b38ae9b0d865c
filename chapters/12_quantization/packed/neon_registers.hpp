// The operations of packed_product.cpp for 64-bit ARM processors (registers.hpp).
//
// NEON's registers have 4 lanes, so that four of them hold the 16. Its dot product (sdot, in most
// processors since 2018) multiplies the 4 bytes of each lane by 4 others and adds all to a sum, but
// only signed integers. It reads 8-bit q less 128, which x's sum restores. Without it, products in
// 16 bits are added up in pairs, and then in 32 bits.
#pragma once

#if defined(__aarch64__)
#include <arm_neon.h>

#include <cstdint>

#include "12_quantization/packed/eight_bit_rows.hpp"

namespace t2t {

struct NeonRegisters {
  struct Bytes {
    uint8x16_t at[4];  // lanes 0 … 3, 4 … 7, 8 … 11 and 12 … 15
  };
  struct Integers {
    int32x4_t at[4];
  };
  struct Floats {
    float32x4_t at[4];
  };
  static bool works_here() { return true; }  // every 64-bit ARM processor has NEON
  static constexpr std::size_t tokens = EightBitRows::together;

  static Bytes load(const std::uint8_t* from) {
    return {vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)};
  }
  static Bytes bits(Bytes x, std::size_t shift, std::size_t count) {
    const int8x16_t down = vdupq_n_s8(std::int8_t(-int(shift)));  // there is only a shift up
    const uint8x16_t mask = vdupq_n_u8(std::uint8_t((1 << count) - 1));
    for (uint8x16_t& bytes : x.at) bytes = vandq_u8(vshlq_u8(bytes, down), mask);
    return x;
  }
  static Bytes with_above(Bytes x, const Bytes& above) {
    for (std::size_t i = 0; i < 4; ++i) x.at[i] = vorrq_u8(x.at[i], vshlq_n_u8(above.at[i], 4));
    return x;
  }
  template <std::size_t bits>
  static void add_products(Integers& sums, const Bytes* w, const std::int8_t* x) {
    constexpr std::uint8_t offset = bits < 8 ? 0 : 128;
    int32x4_t of_offset = vdupq_n_s32(0);  // Σ −128 · x, alike in all lanes
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j) {
      const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(four_bytes(x + 4 * j)));
#pragma GCC unroll 4
      for (std::size_t i = 0; i < 4; ++i) {
        const uint8x16_t lowered = veorq_u8(w[j].at[i], vdupq_n_u8(offset));
        sums.at[i] = add_dot(sums.at[i], vreinterpretq_s8_u8(lowered), four);
      }
      if constexpr (offset > 0) of_offset = add_dot(of_offset, vdupq_n_s8(-128), four);
    }
    if constexpr (offset > 0)
      for (int32x4_t& sum : sums.at) sum = vsubq_s32(sum, of_offset);
  }
  static Integers all(std::int32_t value) {
    const int32x4_t four = vdupq_n_s32(value);
    return {four, four, four, four};
  }
  static Floats all(float value) {
    const float32x4_t four = vdupq_n_f32(value);
    return {four, four, four, four};
  }
  static Floats halves(const std::uint8_t* from) {
    const float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(from));
    const float16x8_t high = vreinterpretq_f16_u8(vld1q_u8(from + 16));
    return {vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low),
            vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)};
  }
  static Floats to_floats(const Integers& x) {
    return {vcvtq_f32_s32(x.at[0]), vcvtq_f32_s32(x.at[1]), vcvtq_f32_s32(x.at[2]),
            vcvtq_f32_s32(x.at[3])};
  }
  static Floats integers(const std::uint8_t* from) {
    const uint8x16_t bytes = vld1q_u8(from);
    const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
    return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
            vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))};
  }
  static Floats multiply(Floats a, const Floats& b) {
    for (std::size_t i = 0; i < 4; ++i) a.at[i] = vmulq_f32(a.at[i], b.at[i]);
    return a;
  }
  static Floats add(Floats a, float b) {
    for (float32x4_t& lanes : a.at) lanes = vaddq_f32(lanes, vdupq_n_f32(b));
    return a;
  }
  static Floats multiply_add(const Floats& a, const Floats& b, Floats c) {
    for (std::size_t i = 0; i < 4; ++i) c.at[i] = vfmaq_f32(c.at[i], a.at[i], b.at[i]);
    return c;
  }
  static void store(const Floats& x, float* to) {
    for (std::size_t i = 0; i < 4; ++i) vst1q_f32(to + 4 * i, x.at[i]);
  }

 private:
  /// Adds to each lane's sum the products of its 4 bytes. Without sdot, a pair of products fits
  /// into 16 bits, since 2 · 128 · 127 is below 2^15.
  static int32x4_t add_dot(int32x4_t sums, int8x16_t w, int8x16_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(sums, w, x);
#else
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
    return vpadalq_s16(sums, vpaddq_s16(low, high));
#endif
  }
};

}  // namespace t2t
#endif
