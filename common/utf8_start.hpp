// Where a UTF-8 character ends (RFC 3629), in text that may be malformed or cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace t2t {

/// How a text begins.
struct Utf8Start {
  enum Kind {
    whole,      // with a character
    cut,        // with the first bytes of a character, at the text's end
    malformed,  // with bytes that no character begins with
  } kind;
  std::size_t length;  // of those bytes
};

/// text must not be empty.
Utf8Start utf8_start(std::string_view text);

bool is_utf8(std::string_view text);

/// How many characters begin in a text, which may be a part of one.
std::size_t count_characters(std::string_view text);

/// Whether this whole character is a control character: below U+0020, or U+007F to U+009F.
bool is_control(std::string_view character);

/// For messages: the beginning of text, up to `most` bytes, on one line. Control characters and
/// malformed bytes are written as \x1b.
std::string printable(std::string_view text, std::size_t most = 60);

/// For texts of several lines: all of it, with the same characters written so, except line ends and
/// tabs.
std::string printable_lines(std::string_view text);

}  // namespace t2t
