// Rounded numbers as floats, for the tests of rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "10_pretrained/file/dequantize.hpp"
#include "12_quantization/formats/quantize.hpp"

namespace t2t {

inline Tensor<2> dequantized(TensorType type, const std::vector<std::uint8_t>& bytes,
                             std::size_t rows, std::size_t cols) {
  Tensor<2> floats = empty(rows, cols);
  dequantize_rows(type, bytes, floats);
  return floats;
}

/// Rounded to the type and read back.
inline Tensor<2> there_and_back(TensorType type, const Tensor<2>& x) {
  return dequantized(type, quantize_rows(type, x), x.shape(0), x.shape(1));
}

}  // namespace t2t
