// A GGUF file, version 3: metadata, a directory of tensors, and their bytes, read where they lie.
//
// Shapes are written innermost first in the file; here, as everywhere in this book, a matrix is
// [out, in], rows first, and each row is whole blocks (dequantize.hpp). Written for files from
// anywhere: opening one checks every length, count, offset, type and name before it is used, so
// that a tensor's bytes are known to be there and its own.
// architecture.hpp and load_model.hpp make a model of it, tokenizer.hpp reads the vocabulary.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>

#include "10_pretrained/dequantize.hpp"
#include "10_pretrained/gguf_metadata.hpp"
#include "10_pretrained/mapped_file.hpp"

namespace t2t {

struct GgufTensor {
  std::string_view name;
  TensorType type;
  std::vector<std::size_t> shape;       // outermost first; 1 to 4 sizes, none 0
  std::uint64_t offset, size;           // in bytes, from where the first tensor's may begin
  std::span<const std::uint8_t> bytes;  // those
};

class GgufFile {
 public:
  /// Maps the file. Throws std::runtime_error, naming the file, what is wrong and where.
  static GgufFile open(const std::filesystem::path& path);
  /// The same of bytes in memory, which must outlive it. name stands for the file in messages.
  GgufFile(std::string name, std::span<const std::uint8_t> bytes);

  const std::string& name() const { return name_; }
  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the file's order

  bool has_tensor(std::string_view name) const { return index_.contains(name); }
  /// Throws std::runtime_error when there is none of that name.
  const GgufTensor& tensor(std::string_view name) const;
  /// Throws, naming both shapes, when it has another. Outer sizes of 1 don't count: some writers
  /// leave them out.
  const GgufTensor& tensor(std::string_view name, std::initializer_list<std::size_t> shape) const;

  /// A tensor of that shape as floats; throws as above.
  Tensor<1> vector(std::string_view name, std::size_t size) const;
  Tensor<2> matrix(std::string_view name, std::size_t rows, std::size_t cols) const;
  /// The same, written where the caller says.
  void read(std::string_view name, Matrix to) const;
  /// Throws, naming the file, when it became shorter since it was opened: what was read may be
  /// wrong.
  void expect_whole() const { mapping_.expect_whole(); }

 private:
  void read_directory(GgufCursor& cursor, std::uint64_t count);
  void place_tensors(std::span<const std::uint8_t> data, std::size_t alignment);
  [[noreturn]] void fail(std::string_view where, std::string_view what) const;

  std::string name_;
  MappedFile mapping_;  // empty when the bytes are somebody else's
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> index_;
};

}  // namespace t2t
