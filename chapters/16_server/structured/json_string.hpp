// A JSON string, byte by byte: which byte may come next.
//
//   "  characters  "     a character is UTF-8 from U+0020 on, or an escape: \n, \", \u0041 …
//
// The string is what RFC 8259, section 7, says, with one addition: \u escapes that are half of a
// surrogate pair are refused, since they are no character. A UTF-8 character can end in a later
// token, so the bytes that may follow inside a character are part of the state.
#pragma once

#include <cstdint>

namespace t2t {

/// A place in a string, after its opening quote.
struct JsonString {
  enum class State : std::uint8_t {
    between,      // between two characters
    inside,       // inside of a character of UTF-8
    escape,       // after a backslash
    digits,       // inside of the digits of a \u escape
    second_half,  // after the first half of a surrogate pair: \u must follow
    end,          // after the closing quote
  };
  State state = State::between;
  std::uint8_t left = 0;              // bytes of a character, or digits, that are still to come
  std::uint8_t low = 0, high = 0;     // the range of the character's next byte
  std::uint8_t digit = 0, first = 0;  // the last digit of an escape, and the one before it
  bool is_second = false;             // the escape is the second half of a pair

  bool operator==(const JsonString&) const = default;
};

/// Whether this byte may come; if so, the string advances by it. A string that has refused a byte
/// must not be used again.
bool step_string(JsonString& string, unsigned char byte);

}  // namespace t2t
