// Builds small GGUF files in memory, correct or damaged, and the first part of large ones. For
// tests, for tiny_model.hpp, and for chapter 12, which writes model files.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace t2t {

/// Appends values to bytes.
struct GgufBytes {
  std::vector<std::uint8_t> bytes;

  template <class Number>
  GgufBytes& put(Number value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof value);
    std::memcpy(&bytes[at], &value, sizeof value);
    return *this;
  }
  GgufBytes& raw(std::string_view text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  GgufBytes& text(std::string_view text) { return put(std::uint64_t(text.size())).raw(text); }

  GgufBytes& header(std::uint64_t tensors, std::uint64_t entries, std::uint32_t version = 3) {
    return raw("GGUF").put(version).put(tensors).put(entries);
  }
  /// A metadata entry, of the types that model files use.
  GgufBytes& entry(std::string_view key, std::uint32_t value) {
    return text(key).put(4u).put(value);
  }
  GgufBytes& entry(std::string_view key, float value) { return text(key).put(6u).put(value); }
  GgufBytes& entry(std::string_view key, bool value) {
    return text(key).put(7u).put(std::uint8_t(value));
  }
  GgufBytes& entry(std::string_view key, std::string_view value) {
    return text(key).put(8u).text(value);
  }
  GgufBytes& entry(std::string_view key, const char* value) {
    return entry(key, std::string_view(value));
  }
  GgufBytes& entry(std::string_view key, const std::vector<std::string>& values) {
    text(key).put(9u).put(8u).put(std::uint64_t(values.size()));
    for (const std::string& value : values) text(value);
    return *this;
  }
  GgufBytes& entry(std::string_view key, const std::vector<std::int32_t>& values) {
    text(key).put(9u).put(5u).put(std::uint64_t(values.size()));
    for (const std::int32_t value : values) put(value);
    return *this;
  }
  /// An entry of the directory; sizes innermost first, as in the format.
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& sizes,
                    std::uint32_t type, std::uint64_t offset) {
    text(name).put(std::uint32_t(sizes.size()));
    for (const std::uint64_t size : sizes) put(size);
    return put(type).put(offset);
  }
  /// Zeros up to the next multiple of alignment, as before each tensor's bytes.
  GgufBytes& pad(std::size_t alignment = 32) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
};

}  // namespace t2t
