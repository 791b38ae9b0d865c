// A GGUF file, version 3: metadata, a directory of tensors, and their bytes, which are not copied.
//
// The file writes shapes innermost size first; here, as everywhere in this book, a matrix is
// [out, in], and each row is whole blocks (dequantize.hpp). A file may come from anybody: opening
// it checks each length, count, offset, type and name before it is used, so each tensor's bytes are
// inside the file and belong to no other tensor. architecture.hpp and load_model.hpp make a model
// of the file, tokenizer.hpp reads its vocabulary.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <map>

#include "10_pretrained/file/dequantize.hpp"
#include "10_pretrained/file/gguf_metadata.hpp"
#include "10_pretrained/file/mapped_file.hpp"

namespace t2t {

struct GgufTensor {
  std::string_view name;
  TensorType type;
  std::vector<std::size_t> shape;       // outermost first; 1 to 4 sizes, none 0
  std::uint64_t offset, size;           // in bytes; offset 0 is the first place for tensors
  std::span<const std::uint8_t> bytes;  // its elements as stored
};

class GgufFile {
 public:
  /// Maps the file. Throws std::runtime_error, naming the file, what is wrong and where.
  static GgufFile open(const std::filesystem::path& path);
  /// The same for bytes in memory, which must outlive it. name stands for the file in messages.
  GgufFile(std::string name, std::span<const std::uint8_t> bytes);

  const std::string& name() const { return name_; }
  const GgufMetadata& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in the file's order

  bool has_tensor(std::string_view name) const { return index_.contains(name); }
  /// Throws std::runtime_error when there is none of that name.
  const GgufTensor& tensor(std::string_view name) const;
  /// Throws also when it has another shape, naming both. Outer sizes of 1 are ignored, since some
  /// files leave them out.
  const GgufTensor& tensor(std::string_view name, const std::vector<std::size_t>& shape) const;

  /// A tensor of that shape as floats. Throws as tensor does.
  Tensor<1> vector(std::string_view name, std::size_t size) const;
  Tensor<2> matrix(std::string_view name, std::size_t rows, std::size_t cols) const;
  /// Throws, naming the file, when it has become shorter since it was opened: then values read from
  /// it may be wrong.
  void expect_whole() const { mapping_.expect_whole(); }
  /// For a tensor that has been converted: its bytes are no longer needed.
  void forget(const GgufTensor& tensor) const { mapping_.forget(tensor.bytes); }

 private:
  void read_directory(GgufCursor& cursor, std::uint64_t count);
  void place_tensors(std::span<const std::uint8_t> data, std::size_t alignment);
  [[noreturn]] void fail(std::string_view where, std::string_view what) const;

  std::string name_;
  MappedFile mapping_;  // empty when the bytes belong to the caller
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string_view, std::size_t> index_;
};

/// Some of a tensor's rows as a separate tensor, [count, cols]: outer sizes count as rows, so that
/// matrix e of [E, rows, cols] begins at row e·rows. Throws std::invalid_argument unless it has
/// them.
GgufTensor rows_of(const GgufTensor& tensor, std::size_t from, std::size_t count);

/// A matrix of a file as floats, [rows, cols]. Throws std::invalid_argument unless it has so many
/// elements.
Tensor<2> floats_of(const GgufTensor& matrix, std::size_t rows, std::size_t cols);

}  // namespace t2t
