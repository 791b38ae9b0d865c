// The metadata of a file of one architecture, each value checked before it is used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "10_pretrained/file/gguf.hpp"

namespace t2t {

/// Whether the file's general.architecture is this one.
bool is_of_architecture(const GgufFile& file, std::string_view name);

/// Looks up "name.key" for a key. A missing key returns the fallback, if there is one. Each throws
/// std::runtime_error, naming the file and the key, for a value that is missing or out of range.
class FileValues {
 public:
  /// The file must outlive it. Throws std::runtime_error when it has another architecture.
  FileValues(const GgufFile& file, std::string name);

  /// From 1 to the largest int.
  std::size_t size(const char* key, std::optional<std::size_t> fallback = {}) const;
  /// Finite and above 0.
  double number(const char* key, std::optional<double> fallback = {}) const;
  std::string text(const char* key, const char* fallback) const;
  /// Refuses a file in which the key is there and another size than this.
  void expect_equal(const char* key, std::size_t wanted) const;
  /// Refuses more blocks than the file has tensors.
  void expect_blocks(std::size_t L) const;

  [[noreturn]] void fail(const char* key, const std::string& what) const;

 private:
  std::string full(const char* key) const { return name_ + "." + key; }

  const GgufFile& file_;
  std::string name_;
};

}  // namespace t2t
