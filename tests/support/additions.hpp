// What the error of a long sum may be, whatever the number of lanes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "lanes.hpp"

namespace t2t {

/// How many additions a term goes through at most in fold_lanes's sum of n terms, if a register has
/// 4 lanes or more. The sum's error is at most so many times u = 2^-24, times the sum of the terms'
/// magnitudes.
inline double additions(std::size_t n) {
  // In a run, each lane of four registers adds up a sixteenth of it, or less. What is left over
  // makes up to 3 whole registers and a part of one; then the registers are joined, and their
  // lanes.
  const std::size_t run = std::min(n, longest_run), in_run = run / 16 + 3 + 1 + 2 + 4;
  const std::size_t halvings = n > longest_run ? std::bit_width((n - 1) / longest_run) : 0;
  return double(in_run + halvings);
}

}  // namespace t2t
