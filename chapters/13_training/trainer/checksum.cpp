#include "13_training/trainer/checksum.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace t2t {

template <class Number>
static std::span<const std::uint8_t> bytes_of(const Number* numbers, std::size_t count) {
  return {reinterpret_cast<const std::uint8_t*>(numbers), count * sizeof(Number)};
}

Checksum& Checksum::add(std::span<const std::uint8_t> bytes) {
  std::uint64_t sum = sum_;
  for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * 1099511628211u;
  sum_ = sum;
  return *this;
}
Checksum& Checksum::add(std::span<const float> numbers) {
  return add(bytes_of(numbers.data(), numbers.size()));
}
Checksum& Checksum::add(std::span<const int> ids) { return add(bytes_of(ids.data(), ids.size())); }
Checksum& Checksum::add(std::uint64_t count) { return add(bytes_of(&count, 1)); }
Checksum& Checksum::add(std::string_view text) {
  return add(std::uint64_t(text.size())).add(bytes_of(text.data(), text.size()));
}

Checksum& Checksum::add_entries(const GgufMetadata& metadata, std::string_view but) {
  for (const GgufEntry& entry : metadata.entries()) {
    if (entry.key == but) continue;
    add(entry.key).add(std::uint64_t(entry.type)).add(std::uint64_t(entry.is_array));
    add(std::uint64_t(entry.count)).add(entry.bytes);
  }
  return *this;
}

Checksum& Checksum::add_head(std::string_view name, std::span<const std::size_t> shape,
                             TensorType type) {
  add(name).add(std::uint64_t(type)).add(std::uint64_t(shape.size()));
  for (const std::size_t size : shape) add(std::uint64_t(size));
  return *this;
}

std::string Checksum::text() const { return fmt::format("{:016x}", sum_); }

std::string checkpoint_checksum(const GgufBytes& entries,
                                const std::vector<StoredTensor>& tensors) {
  const std::vector<std::uint8_t> head = gguf_bytes(entries, {});
  Checksum sum;
  sum.add_entries(GgufFile("checkpoint", head).metadata(), checksum_key);
  for (const auto& [name, shape, pieces] : tensors) {
    sum.add_head(name, shape, TensorType::f32);
    for (const ConstRow& piece : pieces) sum.add(std::span<const float>(piece));
  }
  return sum.text();
}

void expect_checksum(const GgufFile& checkpoint) {
  const auto fail = [&](const char* what) {
    throw std::runtime_error(fmt::format("{}: {}", checkpoint.name(), what));
  };
  if (!checkpoint.metadata().has(checksum_key))
    fail("has no training.checksum, since an older program wrote it; begin a new run");
  Checksum sum;
  sum.add_entries(checkpoint.metadata(), checksum_key);
  for (const GgufTensor& tensor : checkpoint.tensors())
    sum.add_head(tensor.name, tensor.shape, tensor.type).add(tensor.bytes);
  if (sum.text() != checkpoint.metadata().text(checksum_key))
    fail("is damaged: its checksum is not that of its content");
}

std::string checksum_of(const std::vector<ListedTensor>& tensors) {
  Checksum sum;
  for (const ListedTensor& tensor : tensors) sum.add(std::span<const float>(tensor.numbers));
  return sum.text();
}

std::string checksum_of_head(const GgufFile& model) {
  Checksum sum;
  sum.add_entries(model.metadata(), "general.name");
  for (const GgufTensor& tensor : model.tensors())
    sum.add_head(tensor.name, tensor.shape, tensor.type);
  return sum.text();
}

}  // namespace t2t
