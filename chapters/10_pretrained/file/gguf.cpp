#include "10_pretrained/file/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

#include "10_pretrained/tokenizer/utf8.hpp"
#include "shapes.hpp"

namespace t2t {

static constexpr std::uint32_t version_read_here = 3;

void GgufFile::fail(std::string_view where, std::string_view what) const {
  throw std::runtime_error(fmt::format("{}: {}: {}", name_, printable(where), what));
}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  const MappedFile mapping(path);
  GgufFile file(path.string(), mapping.bytes());
  file.mapping_ = mapping;
  return file;
}

static void check_version(const GgufCursor& cursor, std::uint32_t version) {
  if (version == version_read_here) return;
  // A small number with its bytes in the other order is a large one.
  if (version >= 1 << 24) cursor.fail("written by a big-endian machine, which is not read here");
  cursor.fail(fmt::format("version {}, wanted {}", version, version_read_here));
}

/// A count, compared with the rest of the file: each thing takes at least `least` bytes.
static std::uint64_t read_count(GgufCursor& cursor, std::string_view things, std::size_t least) {
  const std::uint64_t count = cursor.number<std::uint64_t>("a count");
  if (count > cursor.left() / least)
    cursor.fail(fmt::format("{} {}, where {} bytes are left", count, things, cursor.left()));
  return count;
}

GgufFile::GgufFile(std::string name, std::span<const std::uint8_t> bytes) : name_(std::move(name)) {
  GgufCursor cursor(name_, bytes);
  const std::span<const std::uint8_t> magic =
      cursor.take(std::min<std::size_t>(4, bytes.size()), "");
  if (!std::ranges::equal(magic, std::string_view("GGUF"))) cursor.fail("is not a GGUF file");
  check_version(cursor, cursor.number<std::uint32_t>("the version"));
  const std::uint64_t tensors = read_count(cursor, "tensors", 8 + 1 + 4 + 8 + 4 + 8);
  const std::uint64_t entries = read_count(cursor, "metadata entries", 8 + 1 + 4 + 1);

  metadata_ = GgufMetadata(name_, cursor, entries);
  const std::int64_t alignment = metadata_.integer("general.alignment", 32);
  if (alignment < 8 || alignment > 1 << 30 || !std::has_single_bit(std::uint64_t(alignment)))
    fail("general.alignment",
         fmt::format("wanted a power of two of at least 8, got {}", alignment));

  // The tensors' bytes begin at the first aligned place after the directory.
  read_directory(cursor, tensors);
  const std::size_t begin = (cursor.at() + alignment - 1) / alignment * alignment;
  place_tensors(bytes.subspan(std::min(begin, bytes.size())), alignment);
}

/// The bytes that a tensor of this type and shape takes. Fails when they pass 2^63.
static std::uint64_t bytes_needed(const GgufCursor& cursor, const GgufTensor& tensor) {
  const BlockLayout block = block_layout(tensor.type);
  if (block.numbers == 0)
    cursor.fail(
        fmt::format("{} is not read here; wanted {}", type_name(tensor.type), types_read_here()));
  if (tensor.shape.back() % block.numbers != 0)
    cursor.fail(fmt::format("rows of {}, which is no multiple of the {} weights of a {} block",
                            tensor.shape.back(), block.numbers, type_name(tensor.type)));

  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = block.bytes;  // of one block, then of a row, of a matrix …
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    const bool innermost = i + 1 == tensor.shape.size();
    const std::uint64_t size = innermost ? tensor.shape[i] / block.numbers : tensor.shape[i];
    if (size > most / bytes)
      cursor.fail(
          fmt::format("shape {} has more bytes than 63 bits count", shape_text(tensor.shape)));
    bytes *= size;
  }
  return bytes;
}

void GgufFile::read_directory(GgufCursor& cursor, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    cursor.set_where(fmt::format("tensor {} of {}", i + 1, count));
    GgufTensor tensor;
    tensor.name = cursor.name(64, "a name");
    cursor.set_where(printable(tensor.name));

    const std::uint32_t dimensions = cursor.number<std::uint32_t>("the number of dimensions");
    if (dimensions < 1 || dimensions > 4)
      cursor.fail(fmt::format("{} dimensions, wanted 1 to 4", dimensions));
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      tensor.shape.push_back(cursor.number<std::uint64_t>("a size"));
      if (tensor.shape.back() == 0) cursor.fail("a dimension of size 0");
    }
    std::ranges::reverse(tensor.shape);

    tensor.type = TensorType(cursor.number<std::uint32_t>("a type"));
    tensor.offset = cursor.number<std::uint64_t>("an offset");
    tensor.size = bytes_needed(cursor, tensor);
    if (!index_.emplace(tensor.name, i).second) cursor.fail("this name occurs twice");
    tensors_.push_back(std::move(tensor));
  }
}

void GgufFile::place_tensors(std::span<const std::uint8_t> data, std::size_t alignment) {
  for (GgufTensor& tensor : tensors_) {
    if (tensor.offset % alignment != 0)
      fail(tensor.name, fmt::format("offset {} is no multiple of {}", tensor.offset, alignment));
    if (tensor.offset > data.size() || tensor.size > data.size() - tensor.offset)
      fail(tensor.name, fmt::format("{} bytes at offset {}, where the file has {}", tensor.size,
                                    tensor.offset, data.size()));
    tensor.bytes = data.subspan(tensor.offset, tensor.size);
  }

  // No byte may belong to two tensors.
  std::vector<const GgufTensor*> by_offset;
  for (const GgufTensor& tensor : tensors_) by_offset.push_back(&tensor);
  std::ranges::sort(by_offset, {}, &GgufTensor::offset);
  for (std::size_t i = 1; i < by_offset.size(); ++i)
    if (by_offset[i - 1]->offset + by_offset[i - 1]->bytes.size() > by_offset[i]->offset)
      fail(by_offset[i]->name,
           fmt::format("its bytes are also those of {}", printable(by_offset[i - 1]->name)));
}

const GgufTensor& GgufFile::tensor(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) fail(name, "there is no such tensor");
  return tensors_[found->second];
}

/// Whether shapes are equal apart from outer sizes of 1, which some files leave out.
static bool same_shape(std::span<const std::size_t> a, std::span<const std::size_t> b) {
  while (!a.empty() && a[0] == 1) a = a.subspan(1);
  while (!b.empty() && b[0] == 1) b = b.subspan(1);
  return std::ranges::equal(a, b);
}

const GgufTensor& GgufFile::tensor(std::string_view name,
                                   const std::vector<std::size_t>& shape) const {
  const GgufTensor& found = tensor(name);
  const std::span<const std::size_t> wanted(shape.begin(), shape.size());
  if (!same_shape(found.shape, wanted))
    fail(name, fmt::format("wanted shape {}, got {}", shape_text(wanted), shape_text(found.shape)));
  return found;
}

Tensor<1> GgufFile::vector(std::string_view name, std::size_t size) const {
  const GgufTensor& from = tensor(name, {size});
  Tensor<1> x = empty(size);
  dequantize_rows(from.type, from.bytes, Matrix(x.data(), 1, size, size));
  return x;
}

Tensor<2> GgufFile::matrix(std::string_view name, std::size_t rows, std::size_t cols) const {
  return floats_of(tensor(name, {rows, cols}), rows, cols);
}

GgufTensor rows_of(const GgufTensor& tensor, std::size_t from, std::size_t count) {
  const std::size_t cols = tensor.shape.back();
  const BlockLayout block = block_layout(tensor.type);
  const std::size_t row_bytes = cols / block.numbers * block.bytes, rows = tensor.size / row_bytes;
  if (from > rows || count > rows - from)
    throw std::invalid_argument(fmt::format("{}: wanted rows {} to {}, got {} rows",
                                            printable(tensor.name), from, from + count, rows));
  const std::uint64_t begin = from * row_bytes, size = count * row_bytes;
  return {tensor.name,           tensor.type, {count, cols},
          tensor.offset + begin, size,        tensor.bytes.subspan(begin, size)};
}

Tensor<2> floats_of(const GgufTensor& matrix, std::size_t rows, std::size_t cols) {
  Tensor<2> x = empty(rows, cols);
  dequantize_rows(matrix.type, matrix.bytes, x);
  return x;
}

}  // namespace t2t
