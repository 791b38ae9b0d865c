// RoPE, rotary position embedding: in a query or key at position m, pair i of its elements is
// rotated, as a point in the plane, by the angle m · frequency[i].
//
//   (a, b) → (a·cos φ − b·sin φ, a·sin φ + b·cos φ)      φ = m · frequency[i]
//                                                        frequency[i] = θ^(−2i/D)
//
// The dot product of a rotated query and a rotated key, their score, then depends on the two
// positions only through their difference. Values are not rotated. Su et al. 2021, "RoFormer".
// Which two elements form a pair is a convention on which published weights differ: Pairing. Longer
// contexts: rope_scaling.hpp. Chapter 05 rotates the keys in its cache; chapter 08 rotates q and k
// in every block.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tensor.hpp"

namespace t2t {

// [types]
/// Which two of a head's D elements are pair i. Weights trained with one pairing give wrong scores
/// with the other, unless their rows are permuted (permute_halves_to_neighbours).
enum class Pairing {
  neighbours,  // (2i, 2i + 1): "interleaved", GPT-J, Meta's LLaMA, llama.cpp's NORM
  halves,      // (i, i + D/2): rotate_half, GPT-NeoX, Hugging Face, vLLM's is_neox_style
};

/// The angle by which each pair rotates per position, in radians: [D/2]. They are doubles: with
/// frequencies in float, angles are wrong by thousandths of a radian after 100,000 positions.
using Frequencies = std::vector<double>;

/// cos and sin of the angle of each position and pair, computed once for a model.
struct RopeTable {
  Tensor<2> cos;  // [S, D/2]
  Tensor<2> sin;  // [S, D/2]
};

/// θ^(−2i/D), from 1 down to a little more than 1/θ. Throws std::invalid_argument when D is odd or
/// 0, or theta is not a finite number above 0.
Frequencies rope_frequencies(std::size_t D,
                             double theta = 10000);  // 10,000 in LLaMA 1 and 2, 500,000 in LLaMA 3

/// The table for positions 0 … S − 1. Everything is computed in double: the angles, their cosines
/// and sines, and the products of these with magnitude; the products are rounded to float. Throws
/// std::invalid_argument when magnitude is not a finite number above 0.
RopeTable rope_table(std::size_t S,                   //
                     const Frequencies& frequencies,  // [D/2]
                     float magnitude = 1);            // a factor on every cos and sin (mscale)
// [/types]

/// Throws std::invalid_argument unless a table of S positions holds start … start + T − 1. The sum
/// is never formed, so a start near the largest std::size_t is refused too.
void expect_positions(std::size_t start, std::size_t T, std::size_t S);

/// Throws std::invalid_argument when D is odd or 0, and when `size`, called `name` in the message,
/// is not a multiple of D.
void expect_whole_heads(std::string_view name, std::size_t size, std::size_t D);

/// Throws std::invalid_argument, in this order: when D is odd or 0, when the table is not [S, D/2],
/// and as expect_positions does.
void expect_table(const RopeTable& table, std::size_t D, std::size_t start, std::size_t T);

/// The reference implementation, written as the papers' formula: neighbours as complex numbers,
/// halves as x·cos + rotate_half(x)·sin. Row t is at position start + t. Returns [T, H·D]. x may
/// have no rows or no columns; then the result has none either. Throws std::invalid_argument when D
/// is odd or 0, x's width is not a multiple of D, and as expect_table does.
Tensor<2> rope(const Tensor<2>& x,      // [T, H·D], heads side by side
               std::size_t D,           //
               const RopeTable& table,  // [S, D/2] each
               std::size_t start,       //
               Pairing pairing);

/// For a w_q or w_k that was trained with halves, when q and k will be rotated as neighbours:
/// within each head, row i of w becomes row 2i and row i + D/2 becomes row 2i + 1: [H·D, C]. Both
/// q's and k's weights must be permuted; then scores stay the same. Values are not rotated, so
/// their weights stay. Throws std::invalid_argument when D is odd or 0, or the number of w's rows
/// is not a multiple of D.
Tensor<2> permute_halves_to_neighbours(ConstMatrix w,  // [H·D, C]
                                       std::size_t D);

/// The inverse, for a w_q or w_k that was trained with neighbours, when q and k will be rotated as
/// halves: within each head, row 2i of w becomes row i and row 2i + 1 becomes row i + D/2. Throws
/// as above.
Tensor<2> permute_neighbours_to_halves(ConstMatrix w,  // [H·D, C]
                                       std::size_t D);

}  // namespace t2t
