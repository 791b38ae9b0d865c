// The operations of packed_product.cpp as loops that any processor can run. The other kinds of
// registers have the same operations (registers.hpp).
#pragma once

#include <cstdint>
#include <cstring>

#include "10_pretrained/file/dequantize.hpp"

namespace t2t {

struct PlainRegisters {
  struct Bytes {
    std::uint8_t at[64];
  };
  struct Integers {
    std::int32_t at[16];
  };
  struct Floats {
    float at[16];
  };
  static bool works_here() { return true; }
  static constexpr std::size_t tokens = 1;  // whose sums the registers hold at a time

  static Bytes load(const std::uint8_t* from) {
    Bytes bytes;
    std::memcpy(bytes.at, from, 64);
    return bytes;
  }
  /// `count` bits of each byte, from bit `shift` on.
  static Bytes bits(Bytes x, std::size_t shift, std::size_t count) {
    for (std::uint8_t& byte : x.at) byte = std::uint8_t(byte >> shift & ((1 << count) - 1));
    return x;
  }
  /// Each byte of at most 15, and other bits above its fourth.
  static Bytes with_above(Bytes x, const Bytes& above) {
    for (std::size_t i = 0; i < 64; ++i) x.at[i] |= std::uint8_t(above.at[i] << 4);
    return x;
  }
  // [products]
  /// Multiplies the 16 weights of each lane, 4 bytes in each of the 4 registers w, by 16 channels
  /// of x, and adds the products to the lane's sum. A weight has this many bits.
  template <std::size_t bits>
  static void add_products(Integers& sums, const Bytes* w, const std::int8_t* x) {
    for (std::size_t lane = 0; lane < 16; ++lane)
      for (std::size_t i = 0; i < 16; ++i) sums.at[lane] += w[i / 4].at[4 * lane + i % 4] * x[i];
  }
  // [/products]
  static Integers all(std::int32_t value) {
    Integers sums;
    for (std::int32_t& sum : sums.at) sum = value;
    return sums;
  }
  static Floats all(float value) {
    Floats floats;
    for (float& lane : floats.at) lane = value;
    return floats;
  }
  static Floats halves(const std::uint8_t* from) {
    Floats floats;
    for (std::size_t lane = 0; lane < 16; ++lane) floats.at[lane] = half_at(from + 2 * lane);
    return floats;
  }
  static Floats to_floats(const Integers& sums) {
    Floats floats;
    for (std::size_t lane = 0; lane < 16; ++lane) floats.at[lane] = float(sums.at[lane]);
    return floats;
  }
  static Floats integers(const std::uint8_t* from) {  // 16 unsigned bytes
    Floats floats;
    for (std::size_t lane = 0; lane < 16; ++lane) floats.at[lane] = float(from[lane]);
    return floats;
  }
  static Floats multiply(const Floats& a, const Floats& b) {
    Floats product;
    for (std::size_t lane = 0; lane < 16; ++lane) product.at[lane] = a.at[lane] * b.at[lane];
    return product;
  }
  static Floats add(Floats a, float b) {
    for (float& lane : a.at) lane += b;
    return a;
  }
  /// a · b + c
  static Floats multiply_add(const Floats& a, const Floats& b, const Floats& c) {
    Floats sum;
    for (std::size_t lane = 0; lane < 16; ++lane)
      sum.at[lane] = a.at[lane] * b.at[lane] + c.at[lane];
    return sum;
  }
  static void store(const Floats& x, float* to) { std::memcpy(to, x.at, sizeof x.at); }
};

}  // namespace t2t
