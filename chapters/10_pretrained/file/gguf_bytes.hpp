// Builds the bytes of GGUF files: the head of a file whose tensors are written after it, or a whole
// small file. It checks nothing, so that tests can build damaged files too.
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
  std::uint64_t entries = 0;  // how many `entry` has appended

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
  /// The beginning of a metadata entry; its value follows.
  GgufBytes& key(std::string_view name, std::uint32_t type) {
    ++entries;
    return text(name).put(type);
  }
  /// A metadata entry, of the types that model files use.
  GgufBytes& entry(std::string_view name, std::uint32_t value) { return key(name, 4).put(value); }
  GgufBytes& entry(std::string_view name, float value) { return key(name, 6).put(value); }
  GgufBytes& entry(std::string_view name, bool value) {
    return key(name, 7).put(std::uint8_t(value));
  }
  GgufBytes& entry(std::string_view name, std::string_view value) {
    return key(name, 8).text(value);
  }
  GgufBytes& entry(std::string_view name, const char* value) {
    return entry(name, std::string_view(value));
  }
  GgufBytes& entry(std::string_view name, const std::vector<std::string>& values) {
    key(name, 9).put(8u).put(std::uint64_t(values.size()));
    for (const std::string& value : values) text(value);
    return *this;
  }
  GgufBytes& entry(std::string_view name, const std::vector<std::int32_t>& values) {
    key(name, 9).put(5u).put(std::uint64_t(values.size()));
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
