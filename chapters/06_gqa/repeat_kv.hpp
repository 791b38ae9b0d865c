// The long way round: each query head gets a copy of its group's keys and values.
//
//   x [S, G·D]  →  [S, H·D]      group g, H / G times side by side: g g g …
//
// With it chapter 04 computes what grouped-query attention does. It costs the memory that sharing
// saves, so here it is only the oracle; other libraries call it repeat_kv too.
#pragma once

#include <cstddef>

#include "tensor.hpp"

namespace t2t {

/// Keys (or values) with a copy of its group for each query head. Throws std::invalid_argument
/// unless G divides H and the columns.
Tensor<2> repeat_kv(const Tensor<2>& x,  // [S, G·D]
                    std::size_t H, std::size_t G);

}  // namespace t2t
