// The sizes and choices in a file's metadata, each checked before it is used. Their keys begin with
// the name of the file's architecture: llama.block_count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// Whether the file's general.architecture is this one.
bool is_of_architecture(const GgufFile& file, std::string_view name);

/// Looks up "name.key" for a key. A missing key returns the fallback, if there is one. Each throws
/// std::runtime_error, naming the file and the key, for a value that is missing or out of range.
class FileValues {
 public:
  /// The file must outlive it. Throws std::runtime_error when it has another architecture.
  FileValues(const GgufFile& file, std::string_view name);

  std::string full(std::string_view key) const;  // "llama.block_count"
  bool has(std::string_view key) const { return file_.metadata().has(full(key)); }
  /// From `least` to the largest int.
  std::size_t size(std::string_view key, std::optional<std::size_t> fallback = {},
                   std::int64_t least = 1) const;
  /// Finite and above 0.
  double number(std::string_view key, std::optional<double> fallback = {}) const;
  std::string text(std::string_view key, const char* fallback) const;

  /// (C, H, G, D). Without keys of their own, G is H and D is C/H.
  std::tuple<std::size_t, std::size_t, std::size_t, std::size_t> head_sizes() const;
  /// V. Some files leave it out; the embedding's shape has it too.
  std::size_t vocabulary() const;

  /// Refuses a file in which the key is there and another size than D.
  void expect_width_of_a_head(std::string_view key, std::size_t D) const;
  /// Refuses more blocks than the file has tensors. Each block has more than one; a larger count is
  /// wrong, and the list of missing tensors would be long.
  void expect_blocks(std::size_t L) const;

  [[noreturn]] void fail(std::string_view key, const std::string& what) const;

 private:
  const GgufFile& file_;
  std::string name_;
};

}  // namespace t2t
