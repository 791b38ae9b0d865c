// Numbers rounded to Q4_K and Q6_K: blocks of 256 numbers, in which the scales are rounded as well.
//
//   Q4_K  x ≈ D·s·q − M·m    q in 0 … 15    s and m in 0 … 63, for each 32 numbers
//   Q6_K  x ≈ D·s·(q − 32)   q in 0 … 63    s in −128 … 127, for each 16 numbers
//
// First each 32 (or 16) numbers get the scale and the minimum that they would have as a block of
// their own. Then D and M, the two F16 numbers of the block, are chosen so that the largest scale
// and the largest minimum are the last value of s and m. s and m are rounded, and q is computed
// last, with the scale that s really gives. Chapter 10's k_quants.hpp has the order of the bits.
// scale_search.hpp finds better scales and stores them with the same functions.
#pragma once

#include <cstdint>
#include <span>

#include "tensor.hpp"

namespace t2t {

/// x ≈ scale·q + minimum
struct Fit {
  float scale, minimum;
};

/// The integers that q may be, and which minimum belongs to them.
struct Grid {
  int lowest, highest;
  enum Minimum { none, zero_or_less, any } minimum;
};
constexpr Grid grid_q4_k = {0, 15, Grid::zero_or_less}, grid_q6_k = {-32, 31, Grid::none};

/// v rounded, and cut off at the ends of the grid. Of NaN, the lowest.
int nearest(float v, const Grid& grid);

/// The scale and the minimum that follow from the numbers' range. Without a minimum, the number of
/// largest size becomes the lowest q. With one, the lowest number becomes q = 0 and the highest the
/// highest q; where the minimum may not be above 0, 0 counts as one of the numbers.
Fit range_fit(ConstRow x, const Grid& grid);

/// Rounds one block of 256 numbers.
void to_q4_k(ConstRow x, std::uint8_t* to);  // 144 bytes
void to_q6_k(ConstRow x, std::uint8_t* to);  // 210 bytes

/// The same, with given scales and minima instead of those of the range.
void put_q4_k(ConstRow x, std::span<const Fit, 8> fits, std::uint8_t* to);
void put_q6_k(ConstRow x, std::span<const Fit, 16> fits, std::uint8_t* to);

}  // namespace t2t
