// Random tensors from a seed, with the same numbers in each run. (An xtensor random expression
// would draw new numbers each time it is read.)
#pragma once

#include <array>
#include <cstdint>

#include "tensor.hpp"

namespace t2t {

/// Seeds derived from a seed (as jax.random.fold_in does), so that any one series of numbers can be
/// drawn again by itself: a training run has a seed for each step, a step one for each random
/// stream (a place where numbers are drawn, say), a stream one for each row. Each level has a
/// factor of its own, so that the series of one level are not those of another.
enum class SeedOf { step, stream, row };
std::uint64_t seed_of(SeedOf level, std::uint64_t seed, std::uint64_t number);

/// A sequence of random numbers from one seed. Must not be used by several threads at once.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// One of a seed's many streams.
  Random(std::uint64_t seed, std::uint64_t stream)
      : Random(seed_of(SeedOf::stream, seed, stream)) {}

  /// From N(mean, deviation²).
  template <std::size_t N>
  Tensor<N> normal(const std::array<std::size_t, N>& shape, float deviation = 1, float mean = 0) {
    Tensor<N> x = Tensor<N>::from_shape(shape);
    for (float& value : x) value = mean + deviation * float(next_normal());
    return x;
  }
  /// Uniform between low and high.
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
