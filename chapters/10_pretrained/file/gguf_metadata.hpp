// The first part of a GGUF file: keys with values, such as "llama.block_count" with 30.
//
// The file may come from anybody: each length and count is compared with the bytes that are left
// before it is used, and a value is read only as the type that the file gives it. Values are not
// copied; strings are views into the file. Arrays inside arrays are refused.
// The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/file/gguf_cursor.hpp"

namespace t2t {

/// The same values as in a file.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  text,
  array,
  u64,
  i64,
  f64,
};

struct GgufEntry {
  std::string_view key;
  GgufType type;                        // of the value, or of an array's elements
  bool is_array;                        // false: one value
  std::size_t count;                    // of elements; 1 for one value
  std::span<const std::uint8_t> bytes;  // the value, or the elements one after the other
};

/// "30", "\"llama\"", "49,152 strings": for a list of a file's contents.
std::string value_text(const GgufEntry& entry);

/// Look-ups throw std::runtime_error, naming the file and the key, when the key is missing or its
/// value has another type. With a fallback, a missing key returns it; another type still throws.
class GgufMetadata {
 public:
  GgufMetadata() = default;
  /// Reads `count` entries at the cursor. Throws as the cursor does.
  GgufMetadata(std::string file, GgufCursor& cursor, std::uint64_t count);

  bool has(std::string_view key) const { return index_.contains(key); }
  std::int64_t integer(std::string_view key) const;
  std::int64_t integer(std::string_view key, std::int64_t fallback) const;
  double real(std::string_view key) const;
  double real(std::string_view key, double fallback) const;
  bool truth(std::string_view key, bool fallback) const;
  std::string_view text(std::string_view key) const;  // UTF-8, inside the file's bytes
  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<std::int64_t> integers(std::string_view key) const;

  /// All entries, in the file's order.
  const std::vector<GgufEntry>& entries() const { return entries_; }

 private:
  const GgufEntry& find(std::string_view key, bool is_array, std::string_view wanted) const;
  [[noreturn]] void fail(const GgufEntry& entry, std::string_view wanted) const;

  std::string file_;
  std::vector<GgufEntry> entries_;
  std::map<std::string_view, std::size_t> index_;
};

}  // namespace t2t
