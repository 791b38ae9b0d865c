#include "12_quantization/eight_bit_rows.hpp"

#include <cmath>
#include <tuple>
#include <utility>

#include "rows.hpp"
#include "shapes.hpp"

namespace t2t {

/// 16 numbers: writes their q, and returns their scale and the sum of q.
static std::pair<float, std::int32_t> round_numbers(const float* x, std::int8_t* q) {
  float highest = 0, all = 0;
#pragma omp simd reduction(max : highest) reduction(+ : all)
  for (std::size_t i = 0; i < 16; ++i) {
    highest = std::max(highest, std::abs(x[i]));
    all += 0 * x[i];  // 0, and NaN if any number is not finite
  }
  // Numbers so small that 127 / highest could be infinite are rounded to 0.
  const float scale = highest / 127 + all, per_step = highest > 1e-30f ? 127 / highest : 0;
  std::int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < 16; ++i) {
    constexpr float magic = 0x1.8p23f;  // near it floats are whole numbers: adding it rounds
    const float rounded = std::isnan(scale) ? 0 : (x[i] * per_step + magic) - magic;
    q[i] = std::int8_t(rounded);
    sum += std::int32_t(rounded);
  }
  return {scale, sum};
}

void round_rows(ConstMatrix x, EightBitRows& to) {
  expect(x.cols % 32 == 0, "C, the columns", "a multiple of 32", double(x.cols));
  to.T = x.rows, to.C = x.cols;
  to.q.resize(x.rows * x.cols);
  to.scales.resize(x.rows * x.cols / 16), to.sums.resize(x.rows * x.cols / 16);
  for_each_row(x.rows, x.cols, [&](std::size_t t) {
    for (std::size_t c = 0; c < x.cols; c += 16) {
      const std::size_t at = 2 * to.block(t, c / 32) + c / 16 % 2;
      std::tie(to.scales[at], to.sums[at]) = round_numbers(&x.row(t)[c], &to.q[16 * at]);
    }
  });
}

}  // namespace t2t
