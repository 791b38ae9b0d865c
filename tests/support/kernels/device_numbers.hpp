// Numbers on a device and back, for the checks of kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/half_types.hpp"
#include "tensor.hpp"

namespace t2t {

inline constexpr double u_float = 0x1p-24;  // a float's rounding, relative
inline constexpr double u_bf16 = 0x1p-8;    // a bf16's

/// Numbers that a bf16 holds, so that the kernels and the formula get the same ones.
inline Tensor<2> rounded(Tensor<2> x) {
  for (float& number : x) number = __bfloat162float(__float2bfloat16(number));
  return x;
}

inline std::vector<bf16> in_bf16(std::span<const float> numbers) {
  std::vector<bf16> result;
  for (const float number : numbers) result.push_back(__float2bfloat16(number));
  return result;
}
inline std::vector<float> floats_of(const std::vector<bf16>& numbers) {
  std::vector<float> result;
  for (const bf16 number : numbers) result.push_back(__bfloat162float(number));
  return result;
}

template <class T>
inline DeviceBuffer<T> on_device(const std::vector<T>& numbers) {
  return DeviceBuffer<T>(std::span<const T>(numbers));
}

/// The largest error as a multiple of its bound; infinite when a number is NaN or sizes differ.
inline double worst(const std::vector<float>& got, const std::vector<double>& want,
                    const std::vector<double>& bound) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (got.size() != want.size() || got.size() != bound.size()) return infinite;
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double error = std::abs(double(got[i]) - want[i]);
    const double ratio = error / bound[i];
    if (!(error <= bound[i])) most = std::max(most, ratio > 1 ? ratio : infinite);
  }
  return most;
}

/// x·wᵀ in float64, and the sum of the sizes of each element's products, of which a bound is a
/// share.
struct ExactProduct {
  std::vector<double> sums, sizes;  // [T, out]
};
inline ExactProduct exact_product(const std::vector<float>& x,  // [T, in]
                                  const std::vector<float>& w,  // [out, in]
                                  int T, int in, int out) {
  ExactProduct exact;
  for (int t = 0; t < T; ++t)
    for (int o = 0; o < out; ++o) {
      double sum = 0, size = 0;
      for (int i = 0; i < in; ++i) {
        const double part = double(x[t * in + i]) * w[o * in + i];
        sum += part, size += std::abs(part);
      }
      exact.sums.push_back(sum), exact.sizes.push_back(size);
    }
  return exact;
}

}  // namespace t2t
