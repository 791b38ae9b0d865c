// A model's quantized matrices: chapter 10 reads a file with packed_matrix instead of its own
// function, and chapters 05 to 11 compute with such a Weight as with any other.
#pragma once

#include "10_pretrained/model/load_model.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "weight.hpp"

namespace t2t {

/// A Weight whose product is packed_product, with 8-bit activations.
Weight packed_weight(PackedRows rows);

/// A matrix of a file, quantized. A type of blocks keeps its values, as do F16 and BF16
/// (half_weight.hpp); an F32 is rounded to Q8_0. An F32 matrix whose rows are not whole blocks of
/// 32 stays floats, and one of positions, which is never multiplied, becomes floats. Fits chapter
/// 10's MakeWeight.
Weight packed_matrix(const GgufTensor& tensor, const TensorInfo& info);

/// A matrix of floats rounded to Q8_0, Q4_0 or Q4_1. Throws as quantize_rows does.
Weight packed_floats(TensorType type, ConstMatrix floats);

}  // namespace t2t
