// Rows of 8-bit activations, as a product with packed weights reads them.
//
// Each 16 channels of a row share a scale: x ≈ scale · q with q in −127 … 127. Activations change
// from token to token, so they are rounded in each call, in the time of reading them once. A few
// channels of a model are far larger than the others; groups of 16, and not 32 as in the weights'
// blocks, put fewer channels beside such a one. The sum of each 16 q is stored, since a weight of
// scale · q + minimum needs it (packed_product.hpp).
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "tensor.hpp"

namespace t2t {

/// T rows of C channels. For products with many tokens, every 8 rows lie together: 32 channels of
/// each, then the next 32 of each. The last T % 8 rows lie one after the other.
struct EightBitRows {
  std::size_t T = 0, C = 0;
  std::vector<std::int8_t> q;      // [T · C], in the order of block
  std::vector<float> scales;       // [T · C / 16]
  std::vector<std::int32_t> sums;  // [T · C / 16]  Σ q
  std::vector<float> scaled_sums;  // [T · C / 32]  Σ scale · q, for the minima

  static constexpr std::size_t together = 8;
  /// 8 if row t lies together with seven others, 1 if it lies alone.
  std::size_t rows_with(std::size_t t) const { return t < T / together * together ? together : 1; }
  /// The place n of channels 32·b … 32·b + 31 of row t. Their q begin at 32n. The first 16 have
  /// scales[2n] and sums[2n], the others scales[2n + 1] and sums[2n + 1], all 32 scaled_sums[n].
  std::size_t block(std::size_t t, std::size_t b) const {
    const std::size_t rows = rows_with(t), first = t / rows * rows;
    return first * (C / 32) + b * rows + t % rows;
  }
};

/// 4 q as one integer, which an instruction can copy to all lanes of a register.
inline std::int32_t four_bytes(const std::int8_t* from) {
  std::int32_t four;
  std::memcpy(&four, from, 4);
  return four;
}

/// Rounds the rows of x, on all threads; halfway between two q, to the even one. Allocates only
/// when `to` has never been so large. Where 16 channels have a NaN or an infinity, their scale is
/// NaN, so that every product with them is NaN. Throws std::invalid_argument unless C is a multiple
/// of 32.
void round_rows(ConstMatrix x, EightBitRows& to);  // x is [T, C]

}  // namespace t2t
