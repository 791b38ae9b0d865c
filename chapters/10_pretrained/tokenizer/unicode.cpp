#include "10_pretrained/tokenizer/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "files/files.hpp"

namespace t2t {

using CodePoints = std::vector<utf8proc_int32_t>;

/// A result of utf8proc, which is negative for an error.
static std::size_t checked(utf8proc_ssize_t result) {
  if (result < 0) throw std::runtime_error(std::string("utf8proc: ") + utf8proc_errmsg(result));
  return std::size_t(result);
}

/// 0 for a character that begins something new; what stands above or below it has another class.
static int combining_class(utf8proc_int32_t point) {
  return utf8proc_get_property(point)->combining_class;
}

/// The code points of a text, each in all of its parts: é is e and U+0301.
static CodePoints decomposed(std::string_view text) {
  constexpr int most = 8;  // parts of a character; Unicode's longest has 4
  CodePoints points;
  int bound_class = 0;
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t point = 0, parts[most];
    at += checked(utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(&text[at]),
                                   utf8proc_ssize_t(text.size() - at), &point));
    const auto options = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
    const std::size_t count =
        checked(utf8proc_decompose_char(point, parts, most, options, &bound_class));
    points.insert(points.end(), parts, parts + std::min<std::size_t>(count, most));
  }
  return points;
}

/// Sorts each run of marks by class; those of one class stay in order. utf8proc's own sort takes
/// time quadratic in the length of a run, and a run may be a megabyte.
static void order_marks(CodePoints& points) {
  const auto is_mark = [](utf8proc_int32_t point) { return combining_class(point) > 0; };
  for (auto begin = points.begin(); begin != points.end();) {
    begin = std::find_if(begin, points.end(), is_mark);
    const auto end = std::find_if_not(begin, points.end(), is_mark);
    std::ranges::stable_sort(begin, end, {}, combining_class);
    begin = end;
  }
}

std::string to_nfc(std::string_view text) {
  expect_utf8("text", text);
  // Nothing changes below U+0300, the first accent, which begins with the byte 0xcc.
  if (std::ranges::none_of(text, [](char byte) { return std::uint8_t(byte) >= 0xcc; }))
    return std::string(text);
  CodePoints points = decomposed(text);
  order_marks(points);
  points.resize(
      checked(utf8proc_normalize_utf32(points.data(), utf8proc_ssize_t(points.size()),
                                       utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE))));
  std::string normal;
  for (const utf8proc_int32_t point : points) {
    utf8proc_uint8_t bytes[4];
    const std::size_t length = checked(utf8proc_encode_char(point, bytes));
    normal.append(reinterpret_cast<const char*>(bytes), length);
  }
  return normal;
}

/// Python's spaces: separators of words, lines and paragraphs, by class or by direction.
static bool is_space(utf8proc_int32_t point) {
  const utf8proc_property_t& property = *utf8proc_get_property(point);
  return property.category == UTF8PROC_CATEGORY_ZS ||
         property.bidi_class == UTF8PROC_BIDI_CLASS_WS ||
         property.bidi_class == UTF8PROC_BIDI_CLASS_B ||
         property.bidi_class == UTF8PROC_BIDI_CLASS_S;
}

std::string_view trimmed(std::string_view text) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t point = 0;
    const std::size_t length =
        checked(utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(&text[at]),
                                 utf8proc_ssize_t(text.size() - at), &point));
    if (!is_space(point)) begin = std::min(begin, at), end = at + length;
    at += length;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

}  // namespace t2t
