// The integers of a block as it is stored in a file, whatever its type. k_quants.hpp and
// dequantize.hpp of chapter 10 describe where they are.
#pragma once

#include <cstdint>

#include "10_pretrained/file/dequantize.hpp"

namespace t2t {

/// 32 weights: value = scale · (q − offset) + minimum. Of types with two levels, s is what the
/// scale of each 16 weights is multiplied by, and m what the minimum is multiplied by.
struct StoredBlock {
  std::uint16_t scale, minimum;  // F16; the minimum is 0 where a type has none
  std::uint8_t q[32];            // unsigned: for Q8_0 q + 128
  int s[2], m;
};

/// Weights 32·b … 32·b + 31 of a row of stored blocks. Its type must have a packed_form.
StoredBlock stored_block(TensorType type, const std::uint8_t* row, std::size_t b);

}  // namespace t2t
