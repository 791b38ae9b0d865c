// Grouped-query attention by copies: each query head gets a copy of its group's keys and values.
//
//   x [S, G·D]  →  [S, H·D]      each group H / G times in a row: 0 0 0 1 1 1 …
//
// Chapter 04's attention over these copies computes grouped-query attention. The copies take the
// memory that sharing saves, so only tests and benches call it. Hugging Face's transformers has a
// function of this name.
#pragma once

#include <cstddef>

#include "tensor.hpp"

namespace t2t {

/// Keys (or values) with one copy for each query head, [S, H·D]. Throws std::invalid_argument as
/// expect_groups does, and unless G divides the number of columns of x.
Tensor<2> repeat_kv(const Tensor<2>& x,  // [S, G·D]
                    std::size_t H, std::size_t G);

}  // namespace t2t
