// RoPE as a model runs it: in place. The tests compare it with the reference in rope.hpp.
//
//   (a, b) of each pair becomes (a·cos − b·sin, a·sin + b·cos)
//
// Chapter 08 rotates the queries and keys of a call with it; chapter 11 implements it on a GPU.
#pragma once

#include "03_rope/rope.hpp"
#include "tensor.hpp"

namespace t2t {

/// Rotates all heads of all rows in place. Row t is at position start + t. A row of the table
/// serves all heads, and a large x takes about as long as reading and writing each of its elements
/// once. Allocates nothing. Throws as rope does.
void rope_rows(Matrix x,                // [T, H·D]
               std::size_t D,           //
               const RopeTable& table,  // [S, D/2] each
               std::size_t start,       //
               Pairing pairing);

}  // namespace t2t
