#include "10_pretrained/file/gguf_cursor.hpp"

#include <fmt/format.h>

#include <cstring>
#include <stdexcept>

#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

GgufCursor::GgufCursor(std::string file, std::span<const std::uint8_t> bytes)
    : file_(std::move(file)), where_("header"), bytes_(bytes) {}

void GgufCursor::fail(std::string_view what) const {
  throw std::runtime_error(fmt::format("{}: {}: {}", file_, where_, what));
}

std::span<const std::uint8_t> GgufCursor::take(std::uint64_t count, std::string_view what) {
  if (count > left())
    fail(fmt::format("{} of {} bytes at byte {}, where {} are left", what, count, at_, left()));
  at_ += count;
  return bytes_.subspan(at_ - count, count);
}

template <class Number>
Number GgufCursor::number(std::string_view what) {
  Number value;
  std::memcpy(&value, take(sizeof(Number), what).data(), sizeof(Number));
  return value;
}
template std::uint32_t GgufCursor::number(std::string_view);
template std::uint64_t GgufCursor::number(std::string_view);

std::string_view GgufCursor::text(std::string_view what) {
  const std::span<const std::uint8_t> bytes = take(number<std::uint64_t>("a length"), what);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string_view GgufCursor::name(std::size_t most, std::string_view what) {
  const std::string_view name = text(what);
  if (name.empty() || name.size() > most)
    fail(fmt::format("{} of {} bytes, wanted 1 to {}", what, name.size(), most));
  if (!is_utf8(name)) fail(fmt::format("{} \"{}\" is not UTF-8", what, printable(name)));
  return name;
}

std::span<const std::uint8_t> GgufCursor::since(std::size_t begin) const {
  return bytes_.subspan(begin, at_ - begin);
}

}  // namespace t2t
