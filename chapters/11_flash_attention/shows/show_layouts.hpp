// Where elements lie on a GPU: in which lane's registers the tensor cores leave a product, and in
// which banks of shared memory a tile's chunks are. For main.cpp.
#pragma once

namespace t2t {

/// Rows of block d [16, 8], by the rule at the head of fragments.hpp.
void show_fragment();

/// The place of chunk 2 in each of 8 rows, bit by bit, and the banks that hold it, without and with
/// the swizzle.
void show_swizzle();

}  // namespace t2t
