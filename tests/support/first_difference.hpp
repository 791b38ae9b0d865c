// What a failed comparison of two lists of numbers says, where doctest would say "false".
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string>

namespace t2t {

/// "number 3 of 12 is 0.5, wanted 0.25", from 0.
std::string first_difference(const auto& got, const auto& want) {
  const std::size_t n = std::ranges::size(got), m = std::ranges::size(want);
  if (n != m) return fmt::format("{} numbers, wanted {}", n, m);
  const auto [g, w] = std::ranges::mismatch(got, want);
  if (g == std::ranges::end(got)) return fmt::format("all {} numbers are equal", n);
  return fmt::format("number {} of {} is {}, wanted {}",
                     std::ranges::distance(std::ranges::begin(got), g), n, *g, *w);
}

}  // namespace t2t
