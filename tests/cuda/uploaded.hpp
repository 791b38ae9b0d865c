#pragma once

#include <span>
#include <vector>

#include "cuda/device.hpp"

namespace t2t {

/// The numbers, in a buffer on the device.
template <class T>
DeviceBuffer<T> uploaded(const std::vector<T>& values) {
  return DeviceBuffer<T>(std::span<const T>(values));
}

}  // namespace t2t
