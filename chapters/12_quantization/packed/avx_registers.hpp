// The operations of packed_product.cpp for x86 processors (registers.hpp).
//
//   AVX-512 VNNI: one instruction multiplies the 4 bytes of a lane by 4 others and adds all to a
//   sum.
//
//   AVX2: registers are half as wide, and one instruction multiplies and adds pairs in 16 bits,
//   whose sums are added up in 32.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>

#include <array>
#include <cstdint>

#include "12_quantization/packed/eight_bit_rows.hpp"

namespace t2t {

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
struct Avx2Registers {
  struct Bytes {
    __m256i a, b;  // lanes 0 … 7 and 8 … 15
  };
  struct Integers {
    __m256i a, b;
  };
  struct Floats {
    __m256 a, b;
  };
  static bool works_here() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");  // so it has F16C, too
  }
  static constexpr std::size_t tokens = EightBitRows::together;

  static Bytes load(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m256i*>(from);
    return {_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1)};
  }
  static Bytes bits(const Bytes& x, std::size_t shift, std::size_t count) {
    const __m256i mask = _mm256_set1_epi8(char((1 << count) - 1));
    return {_mm256_and_si256(_mm256_srli_epi16(x.a, int(shift)), mask),
            _mm256_and_si256(_mm256_srli_epi16(x.b, int(shift)), mask)};
  }
  static Bytes with_above(const Bytes& x, const Bytes& above) {
    return {_mm256_or_si256(x.a, _mm256_slli_epi16(above.a, 4)),
            _mm256_or_si256(x.b, _mm256_slli_epi16(above.b, 4))};
  }
  template <std::size_t bits>
  static void add_products(Integers& sums, const Bytes* w, const std::int8_t* x) {
    if constexpr (bits < 8) {
      add_times<bits>(sums, w, x, 1);
    } else {
      // 255 · 127 · 2 is beyond 16 bits with a sign: each half of a byte is multiplied alone.
      const auto halves_of = [&](std::size_t shift) -> std::array<Bytes, 4> {
        return {Avx2Registers::bits(w[0], shift, 4), Avx2Registers::bits(w[1], shift, 4),
                Avx2Registers::bits(w[2], shift, 4), Avx2Registers::bits(w[3], shift, 4)};
      };
      add_times<4>(sums, halves_of(0).data(), x, 1);
      add_times<4>(sums, halves_of(4).data(), x, 16);
    }
  }
  static Integers all(std::int32_t value) {
    return {_mm256_set1_epi32(value), _mm256_set1_epi32(value)};
  }
  static Floats all(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
  static Floats halves(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
  }
  static Floats to_floats(const Integers& x) {
    return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
  }
  static Floats integers(const std::uint8_t* from) {
    const auto* at = reinterpret_cast<const __m128i*>(from);
    const auto* next = reinterpret_cast<const __m128i*>(from + 8);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at))),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(next)))};
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    return {_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
  }
  static Floats add(const Floats& a, float b) {
    return {_mm256_add_ps(a.a, _mm256_set1_ps(b)), _mm256_add_ps(a.b, _mm256_set1_ps(b))};
  }
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    return {_mm256_fmadd_ps(a.a, b.a, c.a), _mm256_fmadd_ps(a.b, b.b, c.b)};
  }
  static void store(const Floats& x, float* to) {
    _mm256_storeu_ps(to, x.a), _mm256_storeu_ps(to + 8, x.b);
  }

 private:
  /// The same with each product times `factor`. One instruction adds pairs of products in 16 bits.
  /// Four such sums still fit into 16 bits if the weights have at most 5 bits, since 4 · 2 · 31 ·
  /// 127 is below 2^15, and two of them if they have 6. Another instruction adds pairs in 32 bits.
  template <std::size_t bits>
  static void add_times(Integers& sums, const Bytes* w, const std::int8_t* x, short factor) {
    static_assert(bits <= 6);
    const __m256i factors = _mm256_set1_epi16(factor);
    const auto wide = [&](__m256i pairs) { return _mm256_madd_epi16(pairs, factors); };
    const auto sum_of = [&](__m256i Bytes::*half) {
      const auto pairs = [&](std::size_t j) {
        return _mm256_maddubs_epi16(w[j].*half, _mm256_set1_epi32(four_bytes(x + 4 * j)));
      };
      const __m256i first = _mm256_add_epi16(pairs(0), pairs(1));
      const __m256i second = _mm256_add_epi16(pairs(2), pairs(3));
      if constexpr (bits <= 5) return wide(_mm256_add_epi16(first, second));
      return _mm256_add_epi32(wide(first), wide(second));
    };
    sums.a = _mm256_add_epi32(sums.a, sum_of(&Bytes::a));
    sums.b = _mm256_add_epi32(sums.b, sum_of(&Bytes::b));
  }
};
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512BW__)
struct Avx512Registers {
  using Bytes = __m512i;
  using Integers = __m512i;
  using Floats = __m512;
  static bool works_here() {
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
  }
  static constexpr std::size_t tokens = EightBitRows::together;

  static Bytes load(const std::uint8_t* from) { return _mm512_loadu_si512(from); }
  static Bytes bits(Bytes x, std::size_t shift, std::size_t count) {
    const __m512i mask = _mm512_set1_epi8(char((1 << count) - 1));
    return _mm512_and_si512(_mm512_srli_epi16(x, unsigned(shift)), mask);
  }
  static Bytes with_above(Bytes x, Bytes above) {
    return _mm512_or_si512(x, _mm512_slli_epi16(above, 4));
  }
  // [products of VNNI]
  template <std::size_t bits>
  static void add_products(Integers& sums, const Bytes* w, const std::int8_t* x) {
#pragma GCC unroll 4
    for (std::size_t j = 0; j < 4; ++j)
      sums = _mm512_dpbusd_epi32(sums, w[j], _mm512_set1_epi32(four_bytes(x + 4 * j)));
  }
  // [/products of VNNI]
  static Integers all(std::int32_t value) { return _mm512_set1_epi32(value); }
  static Floats all(float value) { return _mm512_set1_ps(value); }
  static Floats halves(const std::uint8_t* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static Floats to_floats(Integers x) { return _mm512_cvtepi32_ps(x); }
  static Floats integers(const std::uint8_t* from) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
  }
  static Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats add(Floats a, float b) { return _mm512_add_ps(a, _mm512_set1_ps(b)); }
  static Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static void store(Floats x, float* to) { _mm512_storeu_ps(to, x); }
};
#endif

}  // namespace t2t
#endif
