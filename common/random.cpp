#include "random.hpp"

#include <cmath>
#include <numbers>

namespace t2t {

// Large odd factors, and none near a multiple of the step by which next_uniform moves on: with such
// a factor neighbouring seeds would give the same numbers, shifted.
std::uint64_t seed_of(SeedOf level, std::uint64_t seed, std::uint64_t number) {
  constexpr std::uint64_t factors[] = {0x9e6c63d0876a9a47, 0xd1342543de82ef95, 0xaf251af3b0f025b5};
  return seed * factors[std::size_t(level)] + number;
}

// SplitMix64 (Steele, Lea and Flood 2014). It is written here so that a seed gives the same numbers
// with each compiler and standard library.
double Random::next_uniform() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return double((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

// Box and Muller 1958: two uniform numbers give an angle and a radius.
double Random::next_normal() {
  const double radius = std::sqrt(-2 * std::log(1 - next_uniform()));
  return radius * std::cos(2 * std::numbers::pi * next_uniform());
}

}  // namespace t2t
