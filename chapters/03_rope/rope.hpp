// RoPE, rotary position embedding: a query or key at position m has each pair of its numbers
// turned, like a clock hand, by m times the pair's own angle.
//
//   (a, b) → (a·cos − b·sin, a·sin + b·cos)      of the angle m · frequency[i]
//                                                frequency[i] = θ^(−2i/D)
//
// Turning both ends of a dot product by one angle leaves it alone, so a score feels only how far
// apart query and key stand. Values are not turned. Su et al. 2021, "RoFormer". Which two numbers
// are a pair is no part of the idea, and published weights differ in it: Pairing. Longer contexts:
// rope_scaling.hpp. Chapter 05 turns keys on their way into the cache, 08 builds it into the block.
#pragma once

#include <cstddef>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// Which two of a head's D numbers are pair i. Weights trained with one are useless with the other,
/// until permuted (below).
enum class Pairing {
  neighbours,  // (2i, 2i + 1)
  halves,      // (i, i + D/2)
};

/// Each pair's angle per position, in radians: [D/2]. In double: a float's last digit, times a
/// position of a hundred thousand, would be off by a thousandth of a radian and more.
using Frequencies = std::vector<double>;

/// cos and sin of every position's angles, computed once.
struct RopeTable {
  Tensor<2> cos;  // [S, D/2]
  Tensor<2> sin;  // [S, D/2]
};

/// θ^(−2i/D), from 1 down almost to 1/θ. Throws std::invalid_argument when D is odd or 0, or theta
/// is no finite number above 0.
Frequencies rope_frequencies(std::size_t D,
                             double theta = 10000);  // 10,000 in LLaMA 1 and 2, 500,000 in LLaMA 3

/// Positions 0 … S − 1. Angles stay double; only their cosines and sines are rounded to float.
/// Throws std::invalid_argument when magnitude is not above 0.
RopeTable rope_table(std::size_t S,                   //
                     const Frequencies& frequencies,  // [D/2]
                     float magnitude = 1);            // of every cos and sin: YaRN's, else 1

/// Throws std::invalid_argument unless D is even and above 0 and the table is for heads of D
/// numbers and has the positions start … start + T − 1.
void expect_table(const RopeTable& table, std::size_t D, std::size_t start, std::size_t T);

/// The formula, as the papers write it: neighbours as complex numbers, halves as x·cos +
/// rotate_half(x)·sin. Row t stands at position start + t. Returns [T, H·D].
/// Throws std::invalid_argument as rope_rows does.
Tensor<2> rope(const Tensor<2>& x,      // [T, H·D], heads side by side
               std::size_t D,           //
               const RopeTable& table,  // [S, D/2] each
               std::size_t start,       //
               Pairing pairing);

/// The same in place, every head of every row: what the later chapters call.
/// Throws std::invalid_argument when D is odd, x is not whole heads wide, and as expect_table does.
void rope_rows(Matrix x,                // [T, H·D]
               std::size_t D,           //
               const RopeTable& table,  // [S, D/2] each
               std::size_t start,       //
               Pairing pairing);

/// Rows of a projection's weights moved within each head, so that what it makes can be turned in
/// the other pairing, with equal scores: row i of a head goes to 2i, row i + D/2 to 2i + 1. [H·D,
/// C]. q's and k's weights both need it; v's don't. Throws std::invalid_argument as rope_rows does.
Tensor<2> permute_halves_to_neighbours(ConstMatrix w,  // [H·D, C]
                                       std::size_t D);

/// The way back.
Tensor<2> permute_neighbours_to_halves(ConstMatrix w,  // [H·D, C]
                                       std::size_t D);

}  // namespace t2t
