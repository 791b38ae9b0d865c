// Where a sequence's keys and values lie, and how they are copied from there into tiles: for the
// kernels of this chapter.
#pragma once

#include "11_flash_attention/kernels/async_tiles.hpp"

namespace t2t {

/// The pages of one sequence for one group of heads.
struct SequencePages {
  const int* table;
  const bf16 *keys, *values;  // [pages, page_size, D], of the group
  int page_size;

  /// Where the key or value of position s begins, from the first of the group's.
  template <int D>
  __device__ long at(int s) const {
    return (long(table[s / page_size]) * page_size + s % page_size) * D;
  }
};

/// Begins to copy keys s to s + rows − 1 and their values into tiles [rows, D], and looks each of
/// them up in the table. Keys from `end` on are not read, and their rows become 0. `threads`
/// threads call it together, each with its number. A chunk is 16 bytes of a row, as in
/// async_tiles.hpp.
template <int D, int rows, int threads>
__device__ __forceinline__ void copy_keys(bf16* k_tile, bf16* v_tile, const SequencePages& sequence,
                                          int s, int end, unsigned thread) {
  const int chunk = thread % (D / 8);
  for (int row = thread / (D / 8); row < rows; row += threads / (D / 8)) {
    const bool inside = s + row < end;
    const long at = inside ? sequence.at<D>(s + row) + chunk * 8 : 0;
    copy_async_16(k_tile + swizzled<D>(row, chunk), sequence.keys + at, inside);
    copy_async_16(v_tile + swizzled<D>(row, chunk), sequence.values + at, inside);
  }
}

}  // namespace t2t
