// Random tensors from a seed: the same numbers on every run, and materialised at once (an xtensor
// random expression would be drawn anew each time it is read).
#pragma once

#include <array>
#include <cstdint>

#include "tensor.hpp"

namespace t2t {

/// Draws one after the other from one seed. Not for use by several threads at once.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// From N(mean, deviation²).
  template <std::size_t N>
  Tensor<N> normal(const std::array<std::size_t, N>& shape, float deviation = 1, float mean = 0) {
    Tensor<N> x = Tensor<N>::from_shape(shape);
    for (float& value : x) value = mean + deviation * float(next_normal());
    return x;
  }
  /// Evenly between low and high.
  template <std::size_t N>
  Tensor<N> uniform(const std::array<std::size_t, N>& shape, float low = 0, float high = 1) {
    Tensor<N> x = Tensor<N>::from_shape(shape);
    for (float& value : x) value = low + (high - low) * float(next_uniform());
    return x;
  }

  double next_uniform();  // [0, 1)
  double next_normal();   // N(0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace t2t
