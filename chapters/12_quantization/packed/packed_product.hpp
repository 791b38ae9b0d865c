// y = x·Wᵀ for packed W, with integers: 8-bit activations times weights of 4 to 8 bits.
//
// Among 16 channels that share both scales, with x ≈ s_x · p and w = s_w · (q − offset) + m,
//
//   Σ x·w  =  s_x · s_w · (Σ p·q − offset · Σ p)  +  s_x · m · Σ p
//
// and 16 multiplications of integers need only two or three of floats. Σ p is the same for all
// rows of weights; round_rows computes it once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "12_quantization/packed/eight_bit_rows.hpp"
#include "12_quantization/packed/packed_rows.hpp"

namespace t2t {

/// Computes rows of groups first … last − 1 for all T. Never throws.
using GroupsProduct = void (*)(const EightBitRows& x, const PackedRows& w, std::size_t first,
                               std::size_t last, Matrix y);

/// The product written for one kind of processor.
struct Instructions {
  std::string name;  // "AVX-512 VNNI", "AVX2", "NEON", "plain"
  GroupsProduct product;
};
/// Those that were compiled and that this processor can run, the fastest first. The last is plain.
const std::vector<Instructions>& instructions_here();

/// One of several products of the same x.
struct PackedProduct {
  const PackedRows* w;  // [rows, cols]
  Matrix y;             // [T, rows]
};

/// y = x·Wᵀ for each of several W, on all threads, which share the rows of all W. The floats are
/// added in one order: block by block, a row's sum becomes
///
///   fma(s_w, fma(Σ₂, s_x2, Σ₁ · s_x1), sum)
///
/// where Σ₁ and Σ₂ are the integers Σ p·q − offset · Σ p of the block's two halves. When each half
/// has its own s_w, it is fma(s_w2, Σ₂ · s_x2, fma(s_w1, Σ₁ · s_x1, sum)); a minimum comes after
/// that. All instructions therefore give the same bits, except plain loops, which may also round
/// each product. Throws std::invalid_argument when shapes disagree.
void packed_products(const EightBitRows& x,  // [T, cols]
                     std::span<const PackedProduct> all,
                     const Instructions& instructions = instructions_here().front());
void packed_product(const EightBitRows& x,  // [T, cols]
                    const PackedRows& w,    // [rows, cols]
                    Matrix y,               // [T, rows]
                    const Instructions& instructions = instructions_here().front());

}  // namespace t2t
