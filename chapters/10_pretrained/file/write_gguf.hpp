// Writes GGUF files whose tensors are floats: models, and what chapter 13 keeps beside them.
//
//   header      GGUF, version 3, how many tensors and entries
//   entries     keys and values
//   directory   each tensor's name, sizes (innermost first), type and offset
//   tensors     their elements as F32, each tensor from a multiple of 32 bytes on
//
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "10_pretrained/file/gguf_bytes.hpp"
#include "tensor.hpp"

namespace t2t {

/// A tensor's name, its sizes, outermost first, and its elements, which may come in several pieces:
/// for example, a tensor [E, rows, cols] as E matrices.
struct StoredTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<ConstRow> pieces;  // together as many elements as the product of the sizes

  std::size_t size() const;  // elements in all pieces
};

/// Writes a file of these entries and tensors. Tensors are written one after the other, so no
/// second copy is made; the file appears whole or not at all, as write_file says. Throws
/// std::invalid_argument for a tensor whose elements do not fill its shape.
void save_gguf(const std::filesystem::path& path, const GgufBytes& entries,
               const std::vector<StoredTensor>& tensors);

/// The file's bytes in memory, for small ones.
std::vector<std::uint8_t> gguf_bytes(const GgufBytes& entries,
                                     const std::vector<StoredTensor>& tensors);

}  // namespace t2t
