// How n things are divided among several ranks.
#pragma once

#include <algorithm>
#include <cstddef>

namespace t2t {

struct Range {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Range i of n things that are cut into so many; the sizes differ by 1 at most.
inline Range range_of(std::size_t n, std::size_t ranges, std::size_t i) {
  return {n * i / ranges, n * (i + 1) / ranges};
}
/// The same, but the first n % ranges of them have one more than the others.
inline Range range_with_more_first(std::size_t n, std::size_t ranges, std::size_t i) {
  const auto begin = [&](std::size_t r) { return r * (n / ranges) + std::min(r, n % ranges); };
  return {begin(i), begin(i + 1)};
}
/// The range that a thing below n lies in.
inline std::size_t range_with(std::size_t n, std::size_t ranges, std::size_t thing) {
  return ((thing + 1) * ranges - 1) / n;
}

}  // namespace t2t
