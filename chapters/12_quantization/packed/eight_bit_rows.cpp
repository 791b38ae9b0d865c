#include "12_quantization/packed/eight_bit_rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// The largest magnitude of 16 channels; NaN if one of them is not finite. As integers, the bits of
/// positive floats have the order of the floats; infinity and NaN come after all others.
static float largest_size(const float* x) {
  std::uint32_t highest = 0;
#pragma omp simd reduction(max : highest)
  for (std::size_t i = 0; i < 16; ++i)
    highest = std::max(highest, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffff);
  const float largest = std::bit_cast<float>(highest);
  return std::isfinite(largest) ? largest : std::numeric_limits<float>::quiet_NaN();
}

/// 16 channels: writes their q, and returns their scale and the sum of q.
static std::pair<float, std::int32_t> round_numbers(const float* x, std::int8_t* q) {
  const float largest = largest_size(x);
  // Each q is 0 if largest is NaN or tiny: far below 1e-30, 127 / largest would be infinite.
  if (!(largest > 1e-30f)) {
    std::fill_n(q, 16, std::int8_t(0));
    return {largest / 127, 0};
  }
  const float per_step = 127 / largest;
  constexpr float magic = 0x1.8p23f;  // near it floats are integers: adding it rounds
  std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < 16; ++i) {
    const std::int32_t rounded = std::int32_t((x[i] * per_step + magic) - magic);
    q[i] = std::int8_t(rounded);
    sum += rounded;
  }
  return {largest / 127, sum};
}

void round_rows(ConstMatrix x, EightBitRows& to) {
  expect(x.cols % 32 == 0, "C, the columns", "a multiple of 32", x.cols);
  to.T = x.rows, to.C = x.cols;
  to.q.resize(x.rows * x.cols);
  to.scales.resize(x.rows * x.cols / 16), to.sums.resize(x.rows * x.cols / 16);
  to.scaled_sums.resize(x.rows * x.cols / 32);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t b = 0; b < x.cols / 32; ++b) {
      const std::size_t at = to.block(t, b);
      float scaled_sum = 0;
      for (const std::size_t half : {0, 1}) {
        const float* numbers = &x.row(t)[32 * b + 16 * half];
        const std::size_t i = 2 * at + half;
        std::tie(to.scales[i], to.sums[i]) = round_numbers(numbers, &to.q[16 * i]);
        scaled_sum += to.scales[i] * float(to.sums[i]);
      }
      to.scaled_sums[at] = scaled_sum;
    }
  });
}

}  // namespace t2t
