// The host's float tensors in device memory. Runs on the host; nvcc does not read this header.
#pragma once

#include <cstddef>
#include <span>

#include "cuda/device.hpp"
#include "tensor.hpp"

namespace t2t {

template <std::size_t dimensions>
DeviceBuffer<float> uploaded(const Tensor<dimensions>& x) {
  return DeviceBuffer<float>(std::span<const float>(x.data(), x.size()));
}

/// The first rows of a table.
inline DeviceBuffer<float> uploaded(const Tensor<2>& x, std::size_t rows) {
  return DeviceBuffer<float>(std::span<const float>(x.data(), rows * x.shape(1)));
}

}  // namespace t2t
