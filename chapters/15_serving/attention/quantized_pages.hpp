// Pages whose keys and values have 8 or 4 bits: chapter 12's quantized rows instead of floats.
//
// A row is quantized alone when it is written, so its values do not depend on its page or on the
// sequences that read it. Attention dequantizes a stretch of rows, in its thread's memory,
// and then computes as with pages of floats.
#pragma once

#include <cstddef>
#include <span>

#include "06_gqa/fast/decode_attention.hpp"
#include "12_quantization/cache/quantized_cache.hpp"

namespace t2t {

/// The pages of one layer. Row number·page_size + i is offset i of page `number`.
struct QuantizedPages {
  QuantizedHeads keys, values;
  std::size_t page_size;  // positions of a page

  /// Throws as make_quantized_heads does.
  QuantizedPages(std::size_t bits, std::size_t G, std::size_t pages, std::size_t page_size,
                 std::size_t D);
};

/// Dequantizes head g's keys and values at these positions of a sequence with this table: one row
/// of k and one of v per position. The row stride is at least whole_blocks(D) floats.
/// Checks nothing and never throws, so that parallel loops may call it.
void load_positions(const QuantizedPages& pages, std::span<const std::size_t> table, std::size_t g,
                    KeyRange positions, Matrix k, Matrix v);

}  // namespace t2t
