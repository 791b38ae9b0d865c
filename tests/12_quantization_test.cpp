// What must be true of rounded weights and activations, and of products with them: the formulas,
// the order in which they are packed, and the same numbers from every kind of instructions.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "10_pretrained/model/tiny_model.hpp"
#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/eight_bit_rows.hpp"
#include "12_quantization/packed/half_weight.hpp"
#include "12_quantization/packed/packed_product.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "12_quantization/rounded.hpp"
#include "cuda/half_types.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/allocations.hpp"
#include "support/apart.hpp"
#include "support/first_difference.hpp"
#include "support/refuses.hpp"

namespace t2t::quantization_test {

using std::size_t;

static constexpr double u = 0x1p-24;  // one rounding of a number up to 1
static constexpr TensorType types[] = {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1};

static Tensor<2> draw(size_t rows, size_t cols, size_t seed, float deviation = 1) {
  return Random(seed).normal<2>({rows, cols}, deviation);
}
static constexpr TensorType packed_types[] = {TensorType::q8_0, TensorType::q4_0, TensorType::q4_1,
                                              TensorType::q5_0, TensorType::q5_1, TensorType::q4_k,
                                              TensorType::q5_k, TensorType::q6_k};

/// Stored rows of such bytes, with scales that make the numbers at most 4.1 in size.
template <class NextByte>
static std::vector<std::uint8_t> stored_rows(TensorType type, size_t rows, size_t cols,
                                             NextByte next_byte) {
  const BlockLayout layout = block_layout(type);
  std::vector<std::uint8_t> bytes(rows * cols / layout.numbers * layout.bytes);
  for (std::uint8_t& byte : bytes) byte = next_byte();
  struct Halves {
    size_t at;
    float scale, minimum;
  };
  const auto [at, scale, minimum] = [&]() -> Halves {
    if (type == TensorType::q8_0) return {0, 0.03f, 0};
    if (type == TensorType::q4_k || type == TensorType::q5_k) return {0, 0.002f, 0.02f};
    if (type == TensorType::q6_k) return {208, 0.001f, 0};
    return {0, 0.1f, -1.5f};
  }();
  for (size_t b = 0; b < bytes.size(); b += layout.bytes)
    for (size_t i = 0; i < (packed_form(type)->has_minimum ? 2 : 1); ++i) {
      const auto seventh = float(b / layout.bytes % 7);  // blocks and rows differ
      const std::uint16_t half = float_to_half((i ? minimum : scale) * (1 - seventh / 8));
      bytes[b + at + 2 * i] = std::uint8_t(half), bytes[b + at + 2 * i + 1] = half >> 8;
    }
  return bytes;
}
/// The same of any bits.
static std::vector<std::uint8_t> drawn_rows(TensorType type, size_t rows, size_t cols,
                                            unsigned seed) {
  Random random(seed);
  return stored_rows(type, rows, cols, [&] { return std::uint8_t(256 * random.next_uniform()); });
}
/// A block of 32: these numbers, and then zeros.
static Tensor<2> block_of(const std::vector<float>& numbers) {
  Tensor<2> x = xt::zeros<float>({1, 32});
  std::ranges::copy(numbers, x.begin());
  return x;
}

TEST_CASE("by hand: Q8_0 has 127 steps to either side, and rounds to the nearest") {
  // The scale is 254/127 = 2. 3 lies between 1 and 2 steps and goes away from 0, as −5 does.
  const std::vector<std::uint8_t> bytes =
      quantize_rows(TensorType::q8_0, block_of({254, 3, -5, 100.5f, -254, 0.9f}));
  CHECK(half_at(bytes.data()) == 2);
  const int want[] = {127, 2, -3, 50, -127, 0, 0};
  for (size_t i = 0; i < 7; ++i) {
    CAPTURE(i);
    CHECK(int(static_cast<std::int8_t>(bytes[2 + i])) == want[i]);
  }
}

TEST_CASE("by hand: Q4_0 gives its number of largest size q = 0, and zero q = 8") {
  // The largest is −4: its scale is −4 / −8 = 1/2. 3.9 would be 7.8 steps: there are only 7.
  // Half a step, and one and a half below 0, go up to the next q.
  Tensor<2> x = block_of({-4, 1, 0.2f, -0.3f, 3.9f, 0.25f, -0.75f});
  x(0, 16) = -2;
  const std::vector<std::uint8_t> bytes = quantize_rows(TensorType::q4_0, x);
  CHECK(half_at(bytes.data()) == 0.5f);
  CHECK(int(bytes[2]) == (0 | 4 << 4));  // number 0, and number 16 in the high half
  CHECK(int(bytes[3]) == (10 | 8 << 4));
  CHECK(int(bytes[4]) == (8 | 8 << 4));
  CHECK(int(bytes[5]) == (7 | 8 << 4));
  CHECK(int(bytes[6]) == (15 | 8 << 4));
  CHECK(int(bytes[7]) == (9 | 8 << 4));
  CHECK(int(bytes[8]) == (7 | 8 << 4));
  // With +4 as the largest, the scale is negative and all changes its sign.
  CHECK(half_at(quantize_rows(TensorType::q4_0, block_of({4, 1})).data()) == -0.5f);
}

TEST_CASE("by hand: Q4_1 has 16 values from the lowest number to the highest") {
  // From −1 to 29 in steps of 2; the zeros are half a step up, and go up.
  const std::vector<std::uint8_t> bytes = quantize_rows(TensorType::q4_1, block_of({-1, 29, 8.8f}));
  CHECK(half_at(bytes.data()) == 2);
  CHECK(half_at(bytes.data() + 2) == -1);
  CHECK(int(bytes[4] & 15) == 0);
  CHECK(int(bytes[5] & 15) == 15);
  CHECK(int(bytes[6] & 15) == 5);
  CHECK(int(bytes[7] & 15) == 1);
  // From 10 to 40 in steps of 2, and the same below 0: the lowest number need not be near 0.
  for (const float sign : {1.0f, -1.0f}) {
    Tensor<2> x = empty(1, 32);
    for (size_t i = 0; i < 32; ++i) x(0, i) = sign * (10 + 2 * float(i % 16));
    const std::vector<std::uint8_t> far = quantize_rows(TensorType::q4_1, x);
    CHECK(half_at(far.data()) == 2);
    CHECK(half_at(far.data() + 2) == (sign > 0 ? 10 : -40));
    CHECK(int(far[4]) == (sign > 0 ? 0x00 : 0xff));
    CHECK(int(far[19]) == (sign > 0 ? 0xff : 0x00));
  }
}

TEST_CASE("a number is off by half a step at most, and a rounded number stays what it is") {
  for (const TensorType type : types)
    for (const float size : {1e-3f, 1.f, 500.f}) {
      CAPTURE(type_name(type));
      CAPTURE(size);
      const Tensor<2> x = draw(9, 96, 7, size), back = there_and_back(type, x);
      for (size_t t = 0; t < 9; ++t)
        for (size_t b = 0; b < 3; ++b) {
          const auto numbers = row(x, t).subspan(32 * b, 32);
          const auto [low, high] = std::ranges::minmax(numbers);
          const double largest = std::max(std::abs(low), std::abs(high));
          const double step = type == TensorType::q8_0   ? largest / 127
                              : type == TensorType::q4_0 ? largest / 8
                                                         : double(high - low) / 15;
          // Q4_0's last value on the far side is 7 steps away, so a number there may be off by a
          // whole one. Scale and minimum are rounded to 11 bits, or below 2^-14 by up to 2^-25, and
          // the scale is multiplied by up to 127.
          const double most =
              (type == TensorType::q4_0 ? 1 : 0.5) * step + 2 * largest * 0x1p-11 + 128 * 0x1p-25;
          for (size_t i = 0; i < 32; ++i)
            CHECK(std::abs(double(numbers[i]) - back(t, 32 * b + i)) <= most);
        }
    }
  // Whole multiples of a scale that an F16 holds.
  Tensor<2> exact = empty(1, 64);
  for (size_t i = 0; i < 64; ++i) exact(0, i) = 0.25f * (float(i * 5 % 16) - 8);
  for (const TensorType type : {TensorType::q4_0, TensorType::q4_1})
    CHECK(all_close(there_and_back(type, exact), exact, 0));
  for (const TensorType type : types) {
    CHECK(all_close(there_and_back(type, Tensor<2>(xt::zeros<float>({1, 32}))),
                    Tensor<2>(xt::zeros<float>({1, 32})), 0));
    CHECK(all_close(there_and_back(type, Tensor<2>(xt::ones<float>({1, 32}) * -3)),
                    Tensor<2>(xt::ones<float>({1, 32}) * -3), 3 * 0x1p-11));
  }
}

TEST_CASE("an F16 is the nearest one: ties to even, large numbers infinite, small ones subnormal") {
  const auto back = [](float x) { return half_to_float(float_to_half(x)); };
  for (const float exact : {0.f, 1.f, -1.5f, 65504.f, 0x1p-24f, -0x1.8p-20f})
    CHECK(back(exact) == exact);
  CHECK(back(1 + 0x1p-11f) == 1);                     // between 1 and 1 + 2^-10: even is 1
  CHECK(back(1 + 3 * 0x1p-11f) == 1 + 2 * 0x1p-10f);  // even is the upper one
  CHECK(back(1e6f) == std::numeric_limits<float>::infinity());
  CHECK(back(0x1p-26f) == 0);
  CHECK(std::isnan(back(NAN)));
}

TEST_CASE("an F16 of this chapter, of chapter 10 and of the kernels is one and the same") {
  const auto same = [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));  // of a NaN each keeps other bits
  };
  const auto rounds_alike = [&](float x) {
    return same(half_to_float(float_to_half(x)), __half2float(__float2half_rn(x)));
  };
  std::size_t others = 0;
  for (std::uint32_t bits = 0; bits < 1 << 16; ++bits) {
    const float x = __half2float({std::uint16_t(bits)});
    others += !same(half_to_float(std::uint16_t(bits)), x);
    // It, the middle between it and the one above, and the floats beside each.
    const float above = __half2float({std::uint16_t(bits + 1)});
    for (const float of : {x, x + (above - x) / 2})
      for (const float to : {0.f, 1e9f, -1e9f})
        others += !rounds_alike(std::nextafter(of, of + to));
  }
  for (const float x : {65519.996f, 65520.f, 65520.004f, 1e30f}) others += !rounds_alike(x);
  CHECK(others == 0);
}

TEST_CASE("by hand: activations in 8 bits, 16 at a time, with the sum of their q") {
  Tensor<2> x = block_of({-127, 1.4f, 2.5f, 3.5f, 30});  // the scale is 1; ties go to even
  for (size_t c = 16; c < 32; ++c) x(0, c) = 0.5f;       // all 127 steps of 0.5/127
  EightBitRows rows;
  round_rows(x, rows);
  const int want[] = {-127, 1, 2, 4, 30, 0};
  for (size_t i = 0; i < 6; ++i) CHECK(int(rows.q[i]) == want[i]);
  CHECK(rows.scales[0] == 1);
  CHECK(rows.sums[0] == -90);
  CHECK(int(rows.q[16]) == 127);
  CHECK(rows.scales[1] == 0.5f / 127);
  CHECK(rows.sums[1] == 16 * 127);
  CHECK(std::abs(rows.scaled_sums[0] - (-90 + 8)) <= 3 * 90 * u);
  round_rows(block_of({1e-38f, -1e-38f}), rows);  // 127 / 1e-38 is infinite
  CHECK(std::abs(double(rows.scales[0]) * rows.q[0] - 1e-38) <= 1.01e-38);  // 0 is near enough
  CHECK(rows.sums[0] == rows.q[0] + rows.q[1]);
}

TEST_CASE(
    "rows of activations, eight together and the rest alone, are each rounded by themselves") {
  for (const size_t T : {1, 7, 8, 9, 19}) {
    CAPTURE(T);
    const Tensor<2> x = draw(T, 96, T);
    EightBitRows rows, alone;
    round_rows(x, rows);
    CHECK(rows.q.size() == T * 96);
    for (size_t t = 0; t < T; ++t) {
      CAPTURE(t);
      round_rows(ConstMatrix(x).rows_from(t, 1), alone);
      for (size_t b = 0; b < 3; ++b) {
        const size_t at = rows.block(t, b);
        INFO(first_difference(std::span(&rows.q[32 * at], 32), std::span(&alone.q[32 * b], 32)));
        CHECK(std::equal(&alone.q[32 * b], &alone.q[32 * b] + 32, &rows.q[32 * at]));
        for (const size_t half : {0, 1}) {
          CHECK(rows.scales[2 * at + half] == alone.scales[2 * b + half]);
          CHECK(rows.sums[2 * at + half] == alone.sums[2 * b + half]);
          for (size_t i = 0; i < 16; ++i) {
            const double value = x(t, 32 * b + 16 * half + i), scale = rows.scales[2 * at + half];
            // Half a step, and the rounding of 127 / highest.
            CHECK(std::abs(value - scale * rows.q[32 * at + 16 * half + i]) <=
                  scale * (0.5 + 127 * 3 * u));
          }
        }
      }
    }
  }
}

TEST_CASE("rows of activations may be parts of wider ones") {
  const Tensor<2> wide = draw(9, 128, 1);
  const ConstMatrix part = ConstMatrix(wide).cols_from(32, 64);
  EightBitRows rows, alone;
  round_rows(part, rows);
  round_rows(copy_of(part), alone);
  INFO(first_difference(rows.q, alone.q));
  CHECK(std::ranges::equal(rows.q, alone.q));
  CHECK(std::ranges::equal(rows.scales, alone.scales));
  CHECK(std::ranges::equal(rows.sums, alone.sums));
}

TEST_CASE("packed rows give back the stored numbers to the last bit, for any number of rows") {
  for (const TensorType type : packed_types)
    for (const size_t rows : {1, 15, 16, 17, 50}) {
      CAPTURE(type_name(type));
      CAPTURE(rows);
      const size_t cols = 3 * block_layout(type).numbers;
      const std::vector<std::uint8_t> stored = drawn_rows(type, rows, cols, unsigned(rows));
      const Tensor<2> want = dequantized(type, stored, rows, cols);
      const PackedRows packed = pack_rows(type, stored, rows, cols);
      Tensor<2> got = empty(rows, cols);
      for (size_t r = 0; r < rows; ++r) unpack_row(packed, r, row(got, r));
      CHECK(all_close(got, want, 0));
      // The integers of a second level have 6 bits in a file (8 in Q6_K), and 8 here.
      const size_t more = packed.form.two_levels && !packed.form.scale_for_16 ? 4 : 0;
      if (rows % 16 == 0) CHECK(packed.bytes.size() == stored.size() + rows * 3 * more);
    }
}

/// x·Wᵀ in double, of the activations as they were rounded.
static Tensor<2> product_in_double(const Tensor<2>& x, const Tensor<2>& w) {
  EightBitRows rounded;
  round_rows(x, rounded);
  Tensor<2> y = empty(x.shape(0), w.shape(0));
  for (size_t t = 0; t < x.shape(0); ++t)
    for (size_t r = 0; r < w.shape(0); ++r) {
      double sum = 0;
      for (size_t c = 0; c < x.shape(1); ++c) {
        const size_t at = 2 * rounded.block(t, c / 32) + c / 16 % 2;
        sum += double(rounded.scales[at]) * rounded.q[16 * at + c % 16] * w(r, c);
      }
      y(t, r) = float(sum);
    }
  return y;
}

TEST_CASE("by hand: one block, one row, with a scale, a minimum and an offset") {
  // 32 activations of 1 (127 steps of 1/127); weights of 3 and, in Q4_1, 5 at one place.
  Tensor<2> w = xt::ones<float>({1, 32}) * 3;
  w(0, 20) = 5;
  const Tensor<2> x = xt::ones<float>({1, 32});
  for (const TensorType type : types) {
    CAPTURE(type_name(type));
    const Tensor<2> stored = there_and_back(type, w);
    double want = 0;
    for (const float weight : stored) want += weight;
    Tensor<2> y = empty(1, 1);
    CHECK(ending_apart([&] { matmul_bt(x, packed_floats(type, w), y); }) == "returned");
    matmul_bt(x, packed_floats(type, w), y);
    CHECK(std::abs(y(0, 0) - want) <= 8 * 98 * u);
  }
}

TEST_CASE("float64 agrees with every kind of instructions, at odd rows and tokens") {
  for (const TensorType type : packed_types)
    for (const size_t rows : {1, 16, 33, 100})
      for (const size_t cols : {32, 96, 512, 4096})
        for (const size_t T : {1, 7, 8, 11}) {
          if (cols % block_layout(type).numbers != 0) continue;
          if (cols == 4096 && (rows != 16 || T > 7)) continue;  // they would take long
          CAPTURE(type_name(type));
          CAPTURE(rows);
          CAPTURE(cols);
          CAPTURE(T);
          const std::vector<std::uint8_t> stored = drawn_rows(type, rows, cols, unsigned(cols));
          const PackedRows packed = pack_rows(type, stored, rows, cols);
          const Tensor<2> x = draw(T, cols, T);
          const Tensor<2> want = product_in_double(x, dequantized(type, stored, rows, cols));
          EightBitRows rounded;
          round_rows(x, rounded);
          for (const Instructions& instructions : instructions_here()) {
            CAPTURE(instructions.name);
            Tensor<2> y = xt::ones<float>({T, rows}) * NAN;
            packed_product(rounded, packed, y, instructions);
            // A block's terms are up to 32·3·4.1; there are cols / 32 of them, each rounded a few
            // times, as often up as down.
            CHECK(all_close(y, want, 400 * std::sqrt(double(cols) / 32) * 8 * u));
          }
        }
}

/// The q of number c in a block of Q4_0 or Q8_0.
static int stored_q(TensorType type, const std::uint8_t* block, size_t c) {
  const std::uint8_t* bytes = block + 2;  // after the scale
  return type == TensorType::q8_0 ? std::int8_t(bytes[c]) : (bytes[c % 16] >> (c / 16 * 4)) & 15;
}

/// One rounded row times the rows of a stored matrix of Q4_0 or Q8_0.
static Tensor<2> product_row_by_row(TensorType type, const std::vector<std::uint8_t>& stored,
                                    size_t rows, const EightBitRows& x) {
  const int offset = type == TensorType::q4_0 ? 8 : 0;
  Tensor<2> y = xt::zeros<float>({size_t(1), rows});
  for (size_t r = 0; r < rows; ++r)
    for (size_t b = 0; b < x.C / 32; ++b) {
      const std::uint8_t* block = &stored[(r * x.C / 32 + b) * block_layout(type).bytes];
      int sums[2] = {0, 0};  // of q·p, over the two halves
      for (size_t c = 0; c < 32; ++c) sums[c / 16] += stored_q(type, block, c) * x.q[32 * b + c];
      for (const size_t half : {0, 1}) sums[half] -= offset * x.sums[2 * b + half];
      const float of_both =
          std::fma(float(sums[1]), x.scales[2 * b + 1], float(sums[0]) * x.scales[2 * b]);
      y(0, r) = std::fma(half_at(block), of_both, y(0, r));
    }
  return y;
}

TEST_CASE("every kind of registers gives the bits of one order of sums, each rounded once") {
  // As packed_product.cpp adds them up, number by number; plain loops may round a product as well.
  const size_t rows = 33, cols = 96;
  for (const TensorType type : {TensorType::q4_0, TensorType::q8_0}) {
    CAPTURE(type_name(type));
    const auto stored = quantize_rows(type, draw(rows, cols, 1));
    const PackedRows packed = pack_rows(type, stored, rows, cols);
    EightBitRows x;
    round_rows(draw(1, cols, 2), x);
    const Tensor<2> want = product_row_by_row(type, stored, rows, x);
    for (const Instructions& instructions : instructions_here()) {
      if (instructions.name == "plain") continue;
      CAPTURE(instructions.name);
      Tensor<2> y = empty(1, rows);
      packed_product(x, packed, y, instructions);
      CHECK(all_close(y, want, 0));
    }
  }
}

TEST_CASE("several products of one x are the same numbers as one after the other") {
  const std::vector<PackedRows> packed = {
      pack_rows(TensorType::q4_1, quantize_rows(TensorType::q4_1, draw(100, 96, 1)), 100, 96),
      pack_rows(TensorType::q8_0, quantize_rows(TensorType::q8_0, draw(7, 96, 2)), 7, 96),
      pack_rows(TensorType::q4_0, quantize_rows(TensorType::q4_0, draw(60, 96, 3)), 60, 96)};
  std::vector<Weight> weights;
  for (const PackedRows& w : packed) weights.push_back(packed_weight(w));
  for (const size_t T : {1, 9}) {
    CAPTURE(T);
    const Tensor<2> x = draw(T, 96, T);
    Tensor<2> y[3];
    for (size_t i = 0; i < 3; ++i) y[i] = empty(T, packed[i].rows);
    matmul_bt_each(x, {{weights[0], y[0]}, {weights[1], y[1]}, {weights[2], y[2]}});
    for (size_t i = 0; i < 3; ++i) CHECK(all_close(y[i], matmul_bt(x, weights[i]), 0));
  }
}

TEST_CASE("integers at their limits neither overflow nor saturate") {
  // In AVX2 pairs of products are added up in 16 bits, so that each type has a limit of its own.
  const size_t rows = 16, cols = 256;
  for (const float x_sign : {1.f, -1.f})
    for (const std::uint8_t byte :
         {0x00, 0x7f, 0x80, 0xff})  // all bits of a q but the sign, or all
      for (const TensorType type : packed_types) {
        CAPTURE(type_name(type));
        CAPTURE(int(byte));
        const Tensor<2> x = xt::ones<float>({size_t(9), cols}) * x_sign;
        const std::vector<std::uint8_t> stored =
            stored_rows(type, rows, cols, [&] { return byte; });
        const Tensor<2> want = product_in_double(x, dequantized(type, stored, rows, cols));
        const PackedRows packed = pack_rows(type, stored, rows, cols);
        EightBitRows rounded;
        round_rows(x, rounded);
        for (const Instructions& instructions : instructions_here()) {
          CAPTURE(instructions.name);
          Tensor<2> y = empty(9, rows);
          packed_product(rounded, packed, y, instructions);
          CHECK(all_close(y, want, 256 * 4.1 * 16 * u));
        }
      }
}

TEST_CASE("NaN and infinity in x reach every result of their token, and no other") {
  const Weight w = packed_floats(TensorType::q4_1, draw(20, 64, 1));
  for (const float bad : {NAN, std::numeric_limits<float>::infinity()})
    for (const size_t T : {1, 9}) {
      Tensor<2> x = draw(T, 64, 2), y = empty(T, 20);
      x(T - 1, 40) = bad;
      matmul_bt(x, w, y);
      for (size_t t = 0; t < T; ++t)
        for (size_t r = 0; r < 20; ++r) {
          INFO(fmt::format("row {} of {}, column {}: {}", t, T, r, y(t, r)));
          CHECK(std::isnan(y(t, r)) == (t == T - 1));
        }
    }
}

TEST_CASE("the number of threads changes no bit, and a second call allocates nothing") {
  const Weight w = packed_floats(TensorType::q4_0, draw(700, 128, 1));
  const Tensor<2> x = draw(19, 128, 2);
  Tensor<2> one = empty(19, 700), two = empty(19, 700);
  set_threads(1);
  matmul_bt(x, w, one);
  set_threads(2);
  CHECK(allocates_nothing(1, [&] { matmul_bt(x, w, two); }));
  CHECK(all_close(one, two, 0));
}

TEST_CASE("a model of packed matrices is near the same model of floats, and knows its size") {
  Random random(3);
  const Config config = tiny_config();
  const ModelWeights drawn = draw_model(config, random);
  const std::vector<std::uint8_t> bytes_of_file = gguf_file(config, drawn);
  const GgufFile file("tiny", bytes_of_file);
  const Model floats = read_model(file), packed = read_model(file, packed_matrix);
  // The tiny file has F32 alone, which becomes Q8_0: 34 bytes for 32 numbers.
  const Weight& w_q = packed.weights().blocks[0].w_q;
  CHECK(w_q.is_packed());
  CHECK(w_q.bytes() == 64 * 64 / 32 * 34);
  Tensor<1> row_of = empty(64);
  packed.weights().embedding.row(65, row(row_of));
  CHECK(all_close(row_of, Tensor<1>(xt::view(drawn.embedding.floats(), 65)), 0.1 / 127));

  const std::vector<int> ids = {72, 101, 121, 32, 97, 10, 11, 12, 13, 14};
  Tensor<2> want = empty(10, config.V), got = want;
  ModelState a(config, 10), b(config, 10);
  forward_all(floats, a, ids, want);
  forward_all(packed, b, ids, got);
  double apart = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    apart += std::pow(double(got.data()[i]) - want.data()[i], 2);
    all += std::pow(double(want.data()[i]), 2);
  }
  // Weights and activations are each off by about 0.5 %, in some ten products one after the other.
  CHECK(std::sqrt(apart / all) < 0.03);
  CHECK(apart > 0);
}

TEST_CASE("the experts of a block, one tensor of the file, become packed weights one by one") {
  Config config{.block = llama_style(32, 4, 2, 64), .L = 2, .V = 40, .T_max = 24};
  config.block.experts = 3, config.block.chosen = 1;
  Random random(5);
  const std::vector<std::uint8_t> bytes = gguf_file(config, draw_model(config, random));
  const GgufFile file("x", bytes);
  const Model floats = read_model(file), packed = read_model(file, packed_matrix);
  const Tensor<2> x = random.normal<2>({5, 32});
  for (std::size_t e = 0; e < 3; ++e) {
    const Weight& w = packed.weights().blocks[1].experts[e].w_up;
    CHECK(w.is_packed());
    CHECK(relative_error(matmul_bt(x, w),
                         matmul_bt(x, floats.weights().blocks[1].experts[e].w_up)) < 0.02);
  }
}

TEST_CASE("weights of 16 bits give the products of the same floats, and take half their memory") {
  const size_t rows = 300, cols = 37;
  for (const TensorType type : {TensorType::f16, TensorType::bf16}) {
    CAPTURE(type_name(type));
    std::vector<std::uint8_t> stored(2 * rows * cols);
    Random random(1);
    for (size_t i = 0; i < stored.size(); i += 2) {
      const auto value = float(random.next_normal());
      const std::uint16_t bits = type == TensorType::f16
                                     ? float_to_half(value)
                                     : std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16);
      stored[i] = std::uint8_t(bits), stored[i + 1] = std::uint8_t(bits >> 8);
    }
    const Tensor<2> floats = dequantized(type, stored, rows, cols);
    const GgufTensor tensor{"w", type, {rows, cols}, 0, stored.size(), stored};
    CHECK_FALSE(packed_matrix(tensor, {"router", rows, cols, Role::router}).is_packed());
    const Weight w = packed_matrix(tensor, {"w_q", rows, cols, Role::matrix});
    CHECK(w.bytes() == stored.size());
    for (const size_t T : {1, 5}) {
      CAPTURE(T);
      const Tensor<2> x = draw(T, cols, T);
      // BLAS may add in another order where there are fewer columns; the terms of a sum are up
      // to 60.
      const double bound = T == 1 ? 0 : 2 * cols * 60 * u;
      CHECK(all_close(matmul_bt(x, w), matmul_bt(x, floats), bound));
    }
    Tensor<1> to = empty(cols);
    w.row(299, row(to));
    CHECK(all_close(to, Tensor<1>(xt::view(floats, 299)), 0));
  }
  const std::vector<std::uint8_t> stored(8);
  REFUSES(half_weight(TensorType::q8_0, stored, 2, 2), "type: wanted F16 or BF16, got Q8_0");
  REFUSES(half_weight(TensorType::f16, stored, 2, 3), "bytes: wanted 12, got 8");
}

TEST_CASE("a product of weights of 16 bits allocates before its loop, on no thread inside it") {
  // More columns than any product before, so that memory which is kept does not suffice.
  const size_t rows = 40, cols = 5001;
  const std::vector<std::uint8_t> stored(2 * rows * cols);
  const Weight w = half_weight(TensorType::f16, stored, rows, cols);
  set_threads(2);
  for (const size_t T : {1, 5}) {
    CAPTURE(T);
    const Tensor<2> x = draw(T, cols, T);
    Tensor<2> y = empty(T, rows);
    CHECK(loops_allocate_nothing([&] { matmul_bt(x, w, y); }));
    CHECK(all_close(y, Tensor<2>(xt::zeros<float>({T, rows})), 0));
  }
}

TEST_CASE("a matrix whose rows are no whole blocks becomes floats") {
  const Tensor<2> floats = draw(3, 40, 1);
  std::vector<std::uint8_t> bytes(sizeof(float) * floats.size());
  std::copy_n(reinterpret_cast<const std::uint8_t*>(floats.data()), bytes.size(), bytes.begin());
  const GgufTensor tensor{"w", TensorType::f32, {3, 40}, 0, bytes.size(), bytes};
  const Weight w = packed_matrix(tensor, {"w_q", 3, 40, Role::matrix});
  CHECK(!w.is_packed());
  CHECK(all_close(w.floats(), floats, 0));
}

TEST_CASE("bad input is refused, and the message names it") {
  const Tensor<2> x = draw(2, 64, 1);
  REFUSES(quantize_rows(TensorType::bf16, x),
          "type: wanted Q8_0, Q4_0, Q4_1, Q4_K or Q6_K, got BF16");
  REFUSES(quantize_rows(TensorType::q8_0, draw(2, 40, 1)),
          "columns: wanted whole blocks of 32, got 40");
  Tensor<2> bad = x;
  bad(1, 3) = NAN;
  REFUSES(quantize_rows(TensorType::q4_0, bad), "x: wanted finite numbers, got nan");
  EightBitRows rounded;
  REFUSES(round_rows(draw(1, 48, 1), rounded), "C, the columns: wanted a multiple of 32, got 48");
  const std::vector<std::uint8_t> stored = quantize_rows(TensorType::q4_0, x);
  REFUSES(pack_rows(TensorType::f32, stored, 2, 64),
          "type: wanted Q8_0 or another type of blocks, got F32");
  REFUSES(pack_rows(TensorType::q4_0, stored, 3, 64), "bytes: wanted 108 for 3 rows, got 72");
  REFUSES(pack_rows(TensorType::q4_0, stored, 1, 64), "bytes: wanted 36 for 1 rows, got 72");
  REFUSES(pack_rows(TensorType::q4_0, stored, 2, 60), "columns: wanted whole blocks of 32, got 60");
  const PackedRows packed = pack_rows(TensorType::q4_0, stored, 2, 64);
  round_rows(draw(3, 32, 1), rounded);
  Tensor<2> y = empty(3, 2);
  REFUSES(packed_product(rounded, packed, y), "x's columns: wanted 64, got 32");
  round_rows(draw(3, 64, 1), rounded);
  Tensor<2> narrow = empty(3, 1);
  REFUSES(packed_product(rounded, packed, narrow), "y: wanted shape [3, 2], got [3, 1]");
}

}  // namespace t2t::quantization_test
