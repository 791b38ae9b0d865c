// What must be true of MXFP4: its 16 values, packing, unpacking, and products with packed weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "12_quantization/formats/quantize.hpp"
#include "12_quantization/formats/relative_error.hpp"
#include "12_quantization/packed/packed_weight.hpp"
#include "13_training/differences.hpp"
#include "25_sinks/mxfp4/mxfp4_weight.hpp"
#include "linalg.hpp"
#include "random.hpp"
#include "support/all_close.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

namespace t2t::mxfp4_test {

using std::size_t;
using Bytes = std::vector<std::uint8_t>;

static constexpr float infinity = std::numeric_limits<float>::infinity();

/// The scale's exponent, then 16 bytes of two codes.
static Bytes block_of(std::uint8_t e, std::uint8_t both) {
  Bytes block(mxfp4_bytes, both);
  block[0] = e;
  return block;
}

static Tensor<2> unpacked(const Bytes& bytes, size_t rows, size_t cols) {
  Tensor<2> x = empty(rows, cols);
  unpack_mxfp4(bytes, x);
  return x;
}

TEST_CASE("by hand: the values of the 16 codes") {
  const float sizes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint8_t code = 0; code < 8; ++code) {
    CHECK(fp4_value(code) == sizes[code]);
    CHECK(fp4_value(code | 8) == -sizes[code]);
    CHECK(nearest_fp4(sizes[code]) == code);
    CHECK(nearest_fp4(-sizes[code]) == (code | 8));
  }
  CHECK(std::signbit(fp4_value(8)));
}

TEST_CASE("by hand: halfway between two values, the code that ends in 0 is nearest") {
  const struct {
    float x, value;
  } ties[] = {{0.25f, 0}, {0.75f, 1}, {1.25f, 1}, {1.75f, 2}, {2.5f, 2}, {3.5f, 4}, {5, 4}};
  for (const auto& [x, value] : ties) {
    CHECK(fp4_value(nearest_fp4(x)) == value);
    CHECK(fp4_value(nearest_fp4(-x)) == -value);
    // The next floats on both sides go to the nearer value.
    const float below = fp4_value(nearest_fp4(std::nextafter(x, 0.0f)));
    const float above = fp4_value(nearest_fp4(std::nextafter(x, 9.0f)));
    CHECK(below < x);
    CHECK(above > x);
  }
  CHECK(fp4_value(nearest_fp4(6.9f)) == 6);
  CHECK(fp4_value(nearest_fp4(infinity)) == 6);
  CHECK(fp4_value(nearest_fp4(-1e30f)) == -6);
}

TEST_CASE("by hand: scales are powers of two, from 2^-127 on") {
  CHECK(e8m0_value(127) == 1);
  CHECK(e8m0_value(128) == 2);
  CHECK(e8m0_value(126) == 0.5f);
  CHECK(e8m0_value(0) == 0x1p-127f);
  CHECK(e8m0_value(254) == 0x1p127f);
}

TEST_CASE("by hand: a block with e = 128, whose first byte is 0xF2, begins with 2 and -12") {
  Bytes block = block_of(128, 0);
  block[1] = 0xf2, block[16] = 0x1c;
  const Tensor<2> x = unpacked(block, 1, 32);
  CHECK(x(0, 0) == 2);     // low half of byte 0: code 2, the value 1, times 2
  CHECK(x(0, 16) == -12);  // high half: code 15, −6
  CHECK(x(0, 15) == -4);   // low half of the last byte: code 12, −2
  CHECK(x(0, 31) == 1);    // high half: code 1, ½
  CHECK(x(0, 1) == 0);
}

TEST_CASE("by hand: the largest weight decides the scale, 4 to 8 of which it has") {
  Tensor<2> x = zeros(1, 32);
  x(0, 0) = 5, x(0, 1) = 0.8f, x(0, 17) = -2.5f;
  const Bytes block = pack_mxfp4(x);
  CHECK(block[0] == 127);
  CHECK(block[1] == 0x06);  // 5 is halfway between 4 and 6, and 4's code, 6, is even
  CHECK(block[2] == 0xc2);  // 0.8 to 1, code 2; −2.5 to −2, code 4 with the sign
  x(0, 0) = 7.9f;
  CHECK(pack_mxfp4(x)[0] == 127);
  CHECK(unpacked(pack_mxfp4(x), 1, 32)(0, 0) == 6);
  x(0, 0) = 8;
  CHECK(pack_mxfp4(x)[0] == 128);
  CHECK(unpacked(pack_mxfp4(x), 1, 32)(0, 0) == 8);
  x(0, 0) = 3.9f;
  CHECK(pack_mxfp4(x)[0] == 126);
}

TEST_CASE("every code under every scale comes back as the product of both") {
  for (int e = 0; e < 255; ++e)
    for (int code = 0; code < 16; ++code) {
      const Tensor<2> x =
          unpacked(block_of(std::uint8_t(e), std::uint8_t(code | (15 - code) << 4)), 1, 32);
      const double want = std::ldexp(double(fp4_value(std::uint8_t(code))), e - 127);
      const double other = std::ldexp(double(fp4_value(std::uint8_t(15 - code))), e - 127);
      CHECK(x(0, 7) == float(want));
      CHECK(x(0, 23) == float(other));
    }
}

TEST_CASE("values of the format stay as they are, whatever the scale") {
  for (const float scale : {1.0f, 0x1p-20f, 0x1p100f, 0x1p-127f}) {
    Tensor<2> x = empty(1, 32);
    for (size_t i = 0; i < 32; ++i) x(0, i) = scale * fp4_value(std::uint8_t(i % 16));
    CHECK(all_close(unpacked(pack_mxfp4(x), 1, 32), x, 0));
  }
  CHECK(all_close(unpacked(pack_mxfp4(zeros(2, 64)), 2, 64), zeros(2, 64), 0));
}

TEST_CASE("no weight is off by more than a quarter of its block's largest, and some nearly are") {
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    const Tensor<2> x = numbers(seed, float(seed) * 0.37f, 0, 8, 96);
    const Tensor<2> back = unpacked(pack_mxfp4(x), 8, 96);
    for (size_t t = 0; t < 8; ++t)
      for (size_t b = 0; b < 3; ++b) {
        float largest = 0, error = 0;
        for (size_t i = 32 * b; i < 32 * (b + 1); ++i) {
          largest = std::max(largest, std::abs(x(t, i)));
          error = std::max(error, std::abs(x(t, i) - back(t, i)));
        }
        CHECK(error <= largest / 4);
        worst = std::max(worst, double(error / largest));
      }
  }
  CHECK(worst > 0.2);
}

TEST_CASE("each weight gets the nearest value of its block's scale") {
  const Tensor<2> x = numbers(3, 6, 0.2f, 5, 64);
  const Bytes bytes = pack_mxfp4(x);
  const Tensor<2> back = unpacked(bytes, 5, 64);
  for (size_t t = 0; t < 5; ++t)
    for (size_t i = 0; i < 64; ++i) {
      const float scale = e8m0_value(bytes[(t * 2 + i / 32) * mxfp4_bytes]);
      float nearest = infinity;
      for (std::uint8_t code = 0; code < 16; ++code)
        nearest = std::min(nearest, std::abs(x(t, i) - scale * fp4_value(code)));
      CHECK(std::abs(x(t, i) - back(t, i)) == nearest);
    }
}

TEST_CASE("the same blocks in Q8_0 have the same values, to the last bit") {
  const Tensor<2> x = numbers(4, 3, 0, 7, 160);
  const Bytes bytes = pack_mxfp4(x);
  Tensor<2> of_q8_0 = empty(7, 160);
  dequantize_rows(TensorType::q8_0, mxfp4_as_q8_0(bytes, 7, 160), of_q8_0);
  CHECK(all_close(of_q8_0, unpacked(bytes, 7, 160), 0));
  for (const std::uint8_t e : {104, 143}) {  // the smallest and the largest scale that fit
    const Bytes block = block_of(e, 0x7a);
    Tensor<2> one = empty(1, 32);
    dequantize_rows(TensorType::q8_0, mxfp4_as_q8_0(block, 1, 32), one);
    CHECK(all_close(one, unpacked(block, 1, 32), 0));
  }
  Tensor<2> none = empty(1, 32);
  dequantize_rows(TensorType::q8_0, mxfp4_as_q8_0(block_of(0, 0x80), 1, 32), none);
  CHECK(all_close(none, zeros(1, 32), 0));  // zeros, whatever their scale
}

TEST_CASE("products with packed weights are those with their floats") {
  for (const size_t rows : {1, 63, 64, 130})
    for (const size_t T : {1, 3}) {
      const Tensor<2> w = numbers(5, 2, 0, rows, 96), x = numbers(6, 2, 0, T, 96);
      const Bytes bytes = pack_mxfp4(w);
      const Weight packed = mxfp4_weight(bytes, rows, 96);
      const Tensor<2> floats = unpacked(bytes, rows, 96);
      CHECK(packed.bytes() == rows * 3 * 17);
      // 96 products of at most 1 · 1.5, which each thread may add up in another order.
      CHECK(all_close(matmul_bt(x, packed), matmul_bt(x, floats), 2 * 96 * 96 * 1.5 * 0x1p-24));
      Tensor<2> row_of = empty(1, 96), want = empty(1, 96);
      packed.row(rows - 1, row(row_of, 0));
      std::ranges::copy(row(floats, rows - 1), row(want, 0).begin());
      CHECK(all_close(row_of, want, 0));
    }
}

TEST_CASE(
    "a row as wide as gpt-oss's experts: the product with its floats, and with its integers") {
  const Tensor<2> w = numbers(5, 2, 0, 80, 2880), x = numbers(6, 2, 0, 2, 2880);
  const Bytes bytes = pack_mxfp4(w);
  const Tensor<2> want = matmul_bt(x, unpacked(bytes, 80, 2880));
  CHECK(all_close(matmul_bt(x, mxfp4_weight(bytes, 80, 2880)), want, 2 * rounding(2880, 1.5)));
  const Weight integers =
      packed_weight(pack_rows(TensorType::q8_0, mxfp4_as_q8_0(bytes, 80, 2880), 80, 2880));
  CHECK(relative_error(matmul_bt(x, integers), want) < 0.01);  // activations in 8 bits
}

TEST_CASE("weights from N(0, 1) lose more than in Q4_0, those beside an outlier less") {
  const auto errors = [](const Tensor<2>& x, bool others) {
    Tensor<2> ours = unpacked(pack_mxfp4(x), 64, 256), q4_0 = empty(64, 256), want = x;
    dequantize_rows(TensorType::q4_0, quantize_rows(TensorType::q4_0, x), q4_0);
    for (size_t t = 0; others && t < 64; ++t)
      for (size_t b = 0; b < 8; ++b)
        ours(t, 32 * b) = q4_0(t, 32 * b) = want(t, 32 * b) = 0;  // what the outliers lose
    return std::pair(relative_error(ours, want), relative_error(q4_0, want));
  };
  Tensor<2> x = Random(2).normal<2>({64, 256});
  const auto [ours, q4_0] = errors(x, false);
  CHECK(ours > 0.10);
  CHECK(ours < 0.13);
  CHECK(q4_0 < 0.095);
  for (size_t t = 0; t < 64; ++t)
    for (size_t b = 0; b < 8; ++b) x(t, 32 * b) *= 20;
  const auto [ours_beside, q4_0_beside] = errors(x, true);
  CHECK(ours_beside < q4_0_beside);
}

TEST_CASE("a scale that is NaN, rows that are no whole blocks and other sizes are refused") {
  Tensor<2> x = empty(2, 64), odd = empty(1, 33);
  Bytes bytes(4 * mxfp4_bytes, 0);
  bytes[3 * mxfp4_bytes] = 255;
  const std::string nan =
      "row 1, block 1: e, the scale's exponent: wanted 0 to 254, since 255 means NaN, got 255";
  REFUSES(unpack_mxfp4(bytes, x), nan);
  REFUSES(mxfp4_weight(bytes, 2, 64), nan);
  REFUSES(mxfp4_as_q8_0(bytes, 2, 64), nan);
  REFUSES(e8m0_value(255),
          "e, the scale's exponent: wanted 0 to 254, since 255 means NaN, got 255");
  bytes.pop_back();
  REFUSES(unpack_mxfp4(bytes, x), "bytes: wanted 68 for 2 rows, got 67");
  REFUSES(unpack_mxfp4(bytes, odd), "columns: wanted whole blocks of 32, got 33");
  REFUSES(pack_mxfp4(odd), "columns: wanted whole blocks of 32, got 33");
  x = zeros(2, 64), x(1, 3) = infinity;
  REFUSES(pack_mxfp4(x), "x: wanted finite numbers, got inf");
  x(1, 3) = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(pack_mxfp4(x), std::invalid_argument);
  CHECK_THROWS_AS(nearest_fp4(x(1, 3)), std::invalid_argument);
  REFUSES(mxfp4_as_q8_0(block_of(144, 1), 1, 32),
          "e, the scale's exponent: wanted 104 to 143, whose halves an F16 can hold, got 144");
  REFUSES(mxfp4_as_q8_0(block_of(103, 1), 1, 32),
          "e, the scale's exponent: wanted 104 to 143, whose halves an F16 can hold, got 103");
}

TEST_CASE("chapter 10 knows the size of a block, and leaves its values to this chapter") {
  CHECK(block_layout(TensorType::mxfp4).numbers == mxfp4_numbers);
  CHECK(block_layout(TensorType::mxfp4).bytes == mxfp4_bytes);
  CHECK(type_name(TensorType::mxfp4) == "MXFP4");
  Tensor<2> x = empty(1, 32);
  REFUSES(dequantize_rows(TensorType::mxfp4, block_of(127, 0), x),
          "tensor type: wanted one of F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, "
          "BF16, got 39");
}

}  // namespace t2t::mxfp4_test
