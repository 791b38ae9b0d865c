// What kernels may use does what CUDA says of it: on the stand-in, and on a GPU where there is one.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <stdexcept>
#include <tuple>

#include "cuda/device.hpp"
#include "cuda/features.hpp"
#include "support/hashed_numbers.hpp"
#include "support/refuses.hpp"

using namespace t2t;

namespace {

bool on_stand_in() { return device_name() == "CPU stand-in"; }

/// 0, 1, … count − 1.
template <class T>
std::vector<T> counted(int count) {
  std::vector<T> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(static_cast<T>(i));
  return numbers;
}

std::uint16_t bf16_bits(float x) { return std::bit_cast<std::uint16_t>(__float2bfloat16_rn(x)); }
std::uint16_t half_bits(float x) { return std::bit_cast<std::uint16_t>(__float2half(x)); }

}  // namespace

TEST_CASE("each thread knows its place") {
  const std::vector<int> all = places();
  CHECK(all[0] == 0);
  CHECK(all[7] == 13);    // block 0, y 1, x 3
  CHECK(all[23] == 123);  // block 1, y 2, x 3
}

TEST_CASE("shared memory carries numbers from thread to thread") {
  const std::vector<float> x = counted<float>(64), mirrored = reversed(x),
                           fours = reversed_fours(x);
  for (int i = 0; i < 64; ++i) {
    CHECK(mirrored[i] == i / 32 * 32 + (31 - i % 32));
    CHECK(fours[i] == i / 4 * 4 + (3 - i % 4));
  }
}

TEST_CASE("shuffles bring what CUDA says") {
  const Shuffles s = shuffles();
  for (int lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    CHECK(s.from_next[lane] == (lane + 1) % 32);
    CHECK(s.flipped[lane] == (lane ^ 5));
    CHECK(s.up[lane] == (lane < 2 ? lane : lane - 2));  // the first lanes keep their own
    CHECK(s.down[lane] == (lane > 29 ? lane : lane + 2));
    CHECK(s.up_by_eights[lane] == (lane % 8 == 0 ? lane : lane - 1));
    CHECK(s.down_by_eights[lane] == (lane % 8 == 7 ? lane : lane + 1));
    // In groups of 8, XOR 8 leads to an earlier group, which may be read, or a later, which may
    // not.
    CHECK(s.flipped_beyond[lane] == (lane / 8 % 2 == 0 ? lane : lane - 8));
  }
  CHECK(warp_sums(false) == std::vector<float>{528, 1552});  // 32·33/2, and 32·32 more
  CHECK(warp_sums(true) == std::vector<float>{1056, 3104});
}

TEST_CASE("votes count the lanes of their mask") {
  CHECK(votes() == std::vector<unsigned>{7, 1, 0, 0xaaaa0000});
}

TEST_CASE("atomics lose nothing") { CHECK(atomics() == std::vector<float>{64, 63, 32, 1}); }

TEST_CASE("the block that is counted last reads what all others wrote") {
  CHECK(sums_of_the_last(1) == std::vector<int>(64, 0));
  CHECK(sums_of_the_last(7) == std::vector<int>(64, 21));
}

TEST_CASE("a named barrier waits for its own warps only") {
  const std::vector<int> out = handed_on();
  for (int i = 0; i < 64; ++i) CHECK(out[i] == i / 32 * 100 + 31 - i % 32);
}

TEST_CASE("a barrier does not wait for threads that have ended") {
  const std::vector<int> out = ended_early();
  for (int i = 0; i < 40; ++i) CHECK(out[i] == 39 - i);
}

TEST_CASE("no result depends on the order of the threads") {
  const std::vector<float> x = counted<float>(512);
  const auto results = [&] {
    return std::tuple(reversed({x.begin(), x.begin() + 64}), warp_sums(false), handed_on(),
                      doubled_by_stages(x, 512));
  };
  const auto forward = results();
  for (const char* order : {"reverse", "1", "2"}) {
    CAPTURE(order);
    setenv("T2T_ORDER", order, 1);
    CHECK(results() == forward);
    unsetenv("T2T_ORDER");
  }
}

TEST_CASE("T2T_ORDER decides whose turn it is") {
  if (!on_stand_in()) return;
  CHECK(turns() == std::vector<unsigned>{3, 0, 1, 2});  // who comes last to a barrier goes on first
  setenv("T2T_ORDER", "reverse", 1);
  CHECK(turns() == std::vector<unsigned>{0, 3, 2, 1});
  setenv("T2T_ORDER", "2", 1);
  const std::vector<unsigned> shuffled = turns();
  CHECK(shuffled != std::vector<unsigned>{3, 0, 1, 2});
  CHECK(std::set(shuffled.begin(), shuffled.end()).size() == 4);
  unsetenv("T2T_ORDER");
}

TEST_CASE("on the stand-in memory begins as NaN, in each block anew") {
  if (!on_stand_in()) return;
  CHECK(fresh_shared_is_nan() == std::vector<int>(3 * 64, 1));
  CHECK(std::isnan(DeviceBuffer<float>(3).download()[2]));
}

TEST_CASE("16-bit floats are rounded to nearest, ties to even") {
  CHECK(bf16_bits(1.0f) == 0x3f80);
  CHECK(bf16_bits(1 + 0x1p-8f) == 0x3f80);      // halfway: down to even
  CHECK(bf16_bits(1 + 3 * 0x1p-8f) == 0x3f82);  // halfway: up to even
  CHECK(bf16_bits(1 + 0x1p-8f + 0x1p-23f) == 0x3f81);
  CHECK(bf16_bits(3.4e38f) == 0x7f80);  // nearer to 2^128 than to the largest
  CHECK(bf16_bits(-INFINITY) == 0xff80);
  CHECK(half_bits(1 + 0x1p-11f) == 0x3c00);
  CHECK(half_bits(1 + 3 * 0x1p-11f) == 0x3c02);
  CHECK(half_bits(65519.9f) == 0x7bff);
  CHECK(half_bits(65520.0f) == 0x7c00);
  CHECK(half_bits(-0x1p-24f) == 0x8001);  // the smallest
  CHECK(half_bits(0x1p-25f) == 0);        // half of it: to even
  CHECK(half_bits(3 * 0x1p-25f) == 2);
  CHECK(half_bits(0x1p-14f - 0x1p-26f) == 0x0400);  // up to the smallest normal number
  CHECK(std::isnan(__bfloat162float(__float2bfloat16_rn(NAN))));
  CHECK(std::isnan(__half2float(__float2half(NAN))));
  for (const float x : {1.00390625f, -3.14159274f, 1e-6f, 70000.0f}) {  // the device agrees
    const float as_bf16 = __bfloat162float(__float2bfloat16_rn(x));
    CHECK(rounded(x) == std::vector<float>{as_bf16, __half2float(__float2half(x)), as_bf16});
  }
}

TEST_CASE("every 16-bit float goes to float and back") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto small = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7fff) <= 0x7f80) wrong += bf16_bits(__bfloat162float({small})) != small;
    if ((bits & 0x7fff) <= 0x7c00) wrong += half_bits(__half2float({small})) != small;
  }
  CHECK(wrong == 0);
}

TEST_CASE("2^x is right, and nothing below the normal numbers") {
  const std::vector<float> y = powers_of_two({0, 3, -5.5f, -INFINITY, -140, 0.1f});
  for (const auto& [i, want] : {std::pair{0, 1.0},
                                {1, 8.0},
                                {2, 0x1p-5 / std::sqrt(2.0)},
                                {3, 0.0},
                                {4, 0.0},
                                {5, 1.0717734625362931}}) {
    CHECK(std::abs(y[i] - want) <= 2 * 0x1p-23 * want);  // 2 units in the last place
  }
}

TEST_CASE("CUDA's scalar functions are there") {
  // -4 is 0xc0800000, three bits; one more in the exponent doubles a number.
  std::vector<float> got = functions_of_four();
  CHECK(std::abs(got[0] - 0.5f) <=
        2 * 0x1p-24f);  // rsqrtf: CUDA promises 2 units in the last place
  got[0] = 0.5f;
  CHECK(got == std::vector<float>{0.5f, 1, 2, 4, 5, 3, 4, 8});
}

TEST_CASE("ldmatrix hands each lane its pairs, transposed or not") {
  std::vector<bf16> four;  // matrix m, row r, column c holds 64·m + 8·r + c: exact up to 256
  for (int i = 0; i < 256; ++i) four.push_back(__float2bfloat16_rn(static_cast<float>(i)));
  const std::vector<int> straight = loaded_matrices(four, false);
  const std::vector<int> across = loaded_matrices(four, true);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) {
      const int matrix = i / 2, g = lane / 4, c = lane % 4 * 2 + i % 2;
      CHECK(straight[lane * 8 + i] == 64 * matrix + 8 * g + c);
      CHECK(across[lane * 8 + i] == 64 * matrix + 8 * c + g);
    }
  }
}

TEST_CASE("the tensor core's product is the plain sum of products") {
  std::vector<bf16> a, b;
  for (const float x : numbers(1, 2, 0, 16 * 16)) a.push_back(__float2bfloat16_rn(x));
  for (const float x : numbers(2, 2, 0, 16 * 8)) b.push_back(__float2bfloat16_rn(x));
  const Tensor<1> sums = numbers(3, 2, 0, 16 * 8);
  const std::vector<float> c(sums.begin(), sums.end());
  const std::vector<float> got = multiplied(a, b, c);
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double want = c[row * 8 + column], size = std::abs(want);
      for (int k = 0; k < 16; ++k) {
        const double term = double{__bfloat162float(a[row * 16 + k])} *
                            double{__bfloat162float(b[column * 16 + k])};
        want += term;
        size += std::abs(term);
      }
      // Products are exact; 16 sums in float, which the hardware may cut off and not round: 2^-23.
      CHECK(std::abs(got[row * 8 + column] - want) <= 16 * 0x1p-23 * size);
    }
  }
}

TEST_CASE("asynchronous copies arrive by their wait, and zeros from outside") {
  const std::vector<float> out = doubled_by_stages(counted<float>(512), 300);
  for (int i = 0; i < 512; ++i) CHECK(out[i] == (i < 300 ? 2 * i : 0));
  const std::vector<float> seen = before_and_after_wait();
  if (on_stand_in()) CHECK(std::isnan(seen[0]));
  CHECK(seen[1] == 3);
  if (on_stand_in()) CHECK(std::isnan(seen[2]));
  CHECK(seen[3] == 3);
}

TEST_CASE("a buffer gives back what was put in, and refuses another size") {
  DeviceBuffer<int> buffer(std::span<const int>(std::vector<int>{1, 2, 3}));
  buffer.upload(std::vector<int>{4, 5, 6});
  const DeviceBuffer<int> moved = std::move(buffer);
  CHECK(moved.download() == std::vector<int>{4, 5, 6});
  REFUSES(DeviceBuffer<int>(3).upload(std::vector<int>{1}),
          "upload: the buffer holds 3 numbers, got 1");
  EventTimer timer;
  timer.start();
  synchronize();
  CHECK(timer.stop_ms() >= 0);
}
