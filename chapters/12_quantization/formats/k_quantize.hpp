// Quantizing to Q4_K and Q6_K: blocks of 256 weights, in which the scales are also rounded.
//
//   Q4_K  x ≈ D·s·q − M·m    q in 0 … 15    s and m in 0 … 63, per 32 weights
//   Q6_K  x ≈ D·s·(q − 32)   q in 0 … 63    s in −128 … 127, per 16 weights
//
// First each 32 (or 16) weights get the scale and the minimum that they would have as a separate
// block. Then D and M, the block's two F16 values, are chosen so that the largest scale and the
// largest minimum are the last value of s and m. s and m are rounded, and q is computed last, with
// the scale that s really gives. Chapter 10's k_quants.hpp describes the order of the bits.
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

/// v rounded, and clipped to the grid. Of NaN, the lowest.
int nearest(float v, const Grid& grid);

/// The scale and the minimum that follow from the weights' range. Without a minimum, the weight of
/// largest magnitude becomes the lowest q. With one, the lowest weight becomes q = 0 and the
/// highest the highest q; where the minimum may not be above 0, 0 counts as one of the weights.
Fit range_fit(ConstRow x, const Grid& grid);

/// Rounds one block of 256 weights.
void to_q4_k(ConstRow x, std::uint8_t* to);  // 144 bytes
void to_q6_k(ConstRow x, std::uint8_t* to);  // 210 bytes

/// The same, with given scales and minima instead of those of the range.
void put_q4_k(ConstRow x, std::span<const Fit, 8> fits, std::uint8_t* to);
void put_q6_k(ConstRow x, std::span<const Fit, 16> fits, std::uint8_t* to);

}  // namespace t2t
