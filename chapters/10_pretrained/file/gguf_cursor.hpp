// Reads bytes from front to back. Each step is compared with the bytes that are left.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace t2t {

/// A place in bytes that may come from anybody. A step past the end throws
/// std::runtime_error("file: where: what is wrong").
class GgufCursor {
 public:
  GgufCursor(std::string file, std::span<const std::uint8_t> bytes);

  template <class Number>
  Number number(std::string_view what);
  std::span<const std::uint8_t> take(std::uint64_t count, std::string_view what);
  /// A length, then as many bytes: 1 to `most`, and UTF-8, since names and keys are printed.
  std::string_view name(std::size_t most, std::string_view what);
  /// A length, then as many bytes.
  std::string_view text(std::string_view what);

  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }
  std::span<const std::uint8_t> since(std::size_t begin) const;
  void set_where(std::string where) { where_ = std::move(where); }
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string file_, where_;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

}  // namespace t2t
