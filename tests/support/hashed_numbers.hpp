// Numbers that need no file: tests and the fixtures' make.py compute them alike.
#pragma once

#include <cstdint>

#include "tensor.hpp"

namespace t2t {

/// middle + scale · u, with u in [-0.5, 0.5) from a hash of (seed, index).
template <class... Size>
Tensor<sizeof...(Size)> numbers(std::uint32_t seed, float scale, float middle, Size... sizes) {
  Tensor<sizeof...(Size)> x = empty(sizes...);
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    std::uint32_t h = i * 0x9E3779B1u + seed * 0x85EBCA6Bu;
    h = (h ^ (h >> 16)) * 0x7FEB352Du;
    h = (h ^ (h >> 15)) * 0x846CA68Bu;
    h ^= h >> 16;
    x.data()[i] = middle + scale * (float(h >> 8) * 0x1p-24f - 0.5f);
  }
  return x;
}

}  // namespace t2t
