// The last step of a mixture: each token adds up the results of its k experts.
//
//   y[t] = results[t·k] + results[t·k + 1] + …      from left to right
//
// The products could add to y themselves, by atomic additions, which would save writing and reading
// [T·k, C] floats. But atomic additions come in another order each time, which would change the
// last bits of y. A block computes a token. Measured on an H100: 91 to 97 % of a copy's speed for
// 4096 tokens and more.
#include <cstddef>

#include "11_flash_attention/kernels/rows/row_kernels.hpp"
#include "14_mixture_of_experts/kernels/kernels.hpp"
#include "cuda/kernel.hpp"

namespace t2t {

namespace {

constexpr int threads = 256;

__global__ void combine(const float* results, int k, int C, float* y) {
  const std::size_t t = blockIdx.x;
  results += t * k * C, y += t * C;
  for (int c = threadIdx.x; c < C; c += threads) {
    float sum = results[c];
    for (int i = 1; i < k; ++i) sum += results[std::size_t(i) * C + c];
    y[c] = sum;
  }
}

}  // namespace

void launch_combine(const float* results, int T, int k, int C, float* y) {
  expect_size("T", T);
  expect_size("k", k);
  expect_size("C", C);
  expect_device("results", results);
  expect_device("y", y);
  T2T_LAUNCH(combine, dim3(unsigned(T)), dim3(threads), 0, results, k, C, y);
}

}  // namespace t2t
