// What a model's file becomes when its matrices get another type: the type, the size and the place
// of each tensor, and the first part of the new file.
//
// A GGUF file is metadata, a directory of tensors, and their bytes. All metadata is copied, except
// for the two entries that say how the file is quantized. The matrices of the blocks, the embedding
// and the head get the new type; norms, biases and other vectors stay as they are, since they are
// small and each element is used for every token. Tensors keep their order; sizes and offsets are
// new.
//
// A row is whole blocks. Where rows are no multiple of 256, the nearest type with blocks of 32 and
// at least as many bits is used: Q4_1 for Q4_K, Q8_0 for Q6_K. A matrix whose rows are no multiple
// of 32 either stays as it is.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "10_pretrained/file/gguf.hpp"
#include "10_pretrained/file/gguf_bytes.hpp"

namespace t2t {

/// The type of this name: "q8_0", "q4_0", "q4_1", "q4_k" or "q6_k". Throws std::invalid_argument
/// for another name.
TensorType rounded_type(std::string_view name);

/// What becomes of a tensor.
struct PlannedTensor {
  const GgufTensor* from;
  bool is_matrix;
  TensorType type;             // in the new file
  std::uint64_t size, offset;  // in bytes, as in GgufTensor
};
/// All tensors of a model's file, in its order. Throws std::runtime_error, as chapter 10's
/// read_config and expect_tensors do, unless the file is a model that is read here.
std::vector<PlannedTensor> plan_tensors(const GgufFile& in, TensorType type);

/// The new file up to its first tensor: metadata and directory. `type` is the one that was asked
/// for; throws std::invalid_argument for one without a name in rounded_type.
std::vector<std::uint8_t> file_head(const GgufFile& in, const std::vector<PlannedTensor>& plan,
                                    TensorType type);

/// Appends an entry as it is in its own file.
void copy_entry(const GgufEntry& entry, GgufBytes& to);

/// The number of a tensor's elements, and the multiple at which a file's tensors begin.
std::uint64_t numbers_of(const GgufTensor& tensor);
std::uint64_t alignment_of(const GgufFile& file);

}  // namespace t2t
