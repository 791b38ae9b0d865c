// Matrix products whose second matrix is a few registers wide, computed a tile at a time.
//
// A tile is a part of the result whose sums stay in vector registers from the first term to the
// last: 8 rows by 3 registers with AVX-512. For each term, the 3 registers of x are loaded once for
// all 8 rows, and one element of each row of a is loaded once for all 3: 11 loads for 24
// multiplications and additions of a whole register. A processor can do two of each in a cycle, so
// that loading does not delay the arithmetic. Goto and van de Geijn 2008, "Anatomy of
// High-Performance Matrix Multiplication", describe it for whole matrices.
//
// a may lie anywhere, row by row or column by column, and is not copied, because its elements are
// read one at a time. Only x must be packed, and it is as narrow as a tile.
#pragma once

#include "lanes.hpp"
#include "tensor.hpp"

namespace t2t {

/// n, rounded up to a multiple of Lanes::size.
constexpr std::size_t whole_registers(std::size_t n) {
  return (n + Lanes::size - 1) / Lanes::size * Lanes::size;
}

/// y = a·x. Shapes are the caller's concern, so that a parallel loop may call it: C columns of a,
/// and R a multiple of Lanes::size. y must not overlap a or x. Never throws.
void multiply_tiles(ConstMatrix a,  // [I, C]
                    ConstMatrix x,  // [C, R]
                    Matrix y);      // [I, R]

/// y = kept ∘ y + aᵀ·x, where kept has a factor for each column of y. Otherwise as multiply_tiles.
void add_transposed_tiles(ConstMatrix a,  // [C, I]
                          ConstMatrix x,  // [C, R]
                          ConstRow kept,  // [R]
                          Matrix y);      // [I, R]

}  // namespace t2t
