// A model's matrices kept in few bits: chapter 10 reads a file with packed_matrix in the place of
// its own reading, and chapters 05 to 11 compute with such a Weight as with any other.
#pragma once

#include "10_pretrained/model/load_model.hpp"
#include "12_quantization/packed/packed_rows.hpp"
#include "weight.hpp"

namespace t2t {

/// A Weight whose product is packed_product, of activations rounded to 8 bits.
Weight packed_weight(PackedRows rows);

/// A matrix of a file, in few bits. A type of blocks keeps its numbers, and so do F16 and BF16
/// (half_weight.hpp); an F32 is rounded to Q8_0. A matrix of F32 whose rows are not whole blocks of
/// 32 stays floats, and one of positions, which is never multiplied, becomes floats. Fits chapter
/// 10's MakeWeight.
Weight packed_matrix(const GgufTensor& tensor, const TensorInfo& info);

/// A matrix of floats rounded to Q8_0, Q4_0 or Q4_1. Throws as quantize_rows does.
Weight packed_floats(TensorType type, ConstMatrix floats);

}  // namespace t2t
