// Reading bytes that anybody may have written, a step at a time, each held against what is left.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace t2t {

/// A place in bytes that nobody vouches for. Each step is checked; a failed one throws
/// std::runtime_error("file: where: what is wrong").
class GgufCursor {
 public:
  GgufCursor(std::string file, std::span<const std::uint8_t> bytes);

  template <class Number>
  Number number(std::string_view what);
  std::span<const std::uint8_t> take(std::uint64_t count, std::string_view what);
  /// A length, then as many bytes: at most `most`, and UTF-8 (names and keys get printed).
  std::string_view name(std::size_t most, std::string_view what);
  /// A length, then as many bytes of any kind.
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
