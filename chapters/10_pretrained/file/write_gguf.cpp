#include "10_pretrained/file/write_gguf.hpp"

#include <fmt/core.h>

#include <string_view>

#include "10_pretrained/file/gguf.hpp"
#include "files/files.hpp"
#include "shapes.hpp"

namespace t2t {

static std::string_view as_text(const void* bytes, std::size_t size) {
  return {static_cast<const char*>(bytes), size};
}

std::size_t StoredTensor::size() const {
  std::size_t numbers = 0;
  for (const ConstRow& piece : pieces) numbers += piece.size();
  return numbers;
}

/// Where the next tensor may begin.
static std::size_t aligned(std::size_t bytes) { return (bytes + 31) / 32 * 32; }

/// The file up to its first tensor's elements.
static GgufBytes head_of(const GgufBytes& entries, const std::vector<StoredTensor>& tensors) {
  GgufBytes head;
  head.header(tensors.size(), entries.entries)
      .raw(as_text(entries.bytes.data(), entries.bytes.size()));
  std::uint64_t offset = 0;  // from the end of the head
  for (const StoredTensor& tensor : tensors) {
    const std::vector<std::size_t>& shape = tensor.shape;
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    expect(tensor.size() == size, tensor.name, fmt::format("{} elements", size), tensor.size());
    head.tensor(tensor.name, {shape.rbegin(), shape.rend()}, std::uint32_t(TensorType::f32),
                offset);
    offset += aligned(sizeof(float) * size);
  }
  return head.pad();
}

static void write_numbers(const std::vector<StoredTensor>& tensors, const WriteBytes& write) {
  for (const StoredTensor& tensor : tensors) {
    for (const ConstRow& piece : tensor.pieces) write(as_text(piece.data(), piece.size_bytes()));
    const std::size_t size = sizeof(float) * tensor.size();
    write(std::string(aligned(size) - size, '\0'));
  }
}

void save_gguf(const std::filesystem::path& path, const GgufBytes& entries,
               const std::vector<StoredTensor>& tensors) {
  const GgufBytes head = head_of(entries, tensors);
  write_file(path, [&](const WriteBytes& write) {
    write(as_text(head.bytes.data(), head.bytes.size()));
    write_numbers(tensors, write);
  });
}

std::vector<std::uint8_t> gguf_bytes(const GgufBytes& entries,
                                     const std::vector<StoredTensor>& tensors) {
  GgufBytes file = head_of(entries, tensors);
  write_numbers(tensors, [&](std::string_view bytes) { file.raw(bytes); });
  return file.bytes;
}

}  // namespace t2t
