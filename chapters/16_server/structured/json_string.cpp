#include "16_server/structured/json_string.hpp"

#include <optional>
#include <string_view>

namespace t2t {

using State = JsonString::State;

/// The first byte of a character says how many follow. After the first bytes E0, ED, F0 and
/// F4 the second byte has a smaller range, so that no character is longer than it need be, half of
/// a surrogate pair, or above U+10FFFF.
static bool begin_character(JsonString& s, unsigned char byte) {
  if (byte < 0x80) return byte >= 0x20;
  if (byte < 0xC2 || byte > 0xF4) return false;
  s.state = State::inside;
  s.left = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  s.low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
  s.high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
  return true;
}

static bool go_on_in_character(JsonString& s, unsigned char byte) {
  if (byte < s.low || byte > s.high) return false;
  s.low = 0x80, s.high = 0xBF;
  if (--s.left == 0) s.state = State::between;
  return true;
}

static bool begin_escape(JsonString& s, unsigned char byte) {
  if (byte == 'u') {
    s.state = State::digits, s.left = 4;
    return true;
  }
  s.state = State::between;
  return !s.is_second && std::string_view("\"\\/bfnrt").find(char(byte)) != std::string_view::npos;
}

static std::optional<std::uint8_t> hex_digit(unsigned char byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return {};
}

/// The four digits of an escape. The first two say whether it is half of a surrogate pair: D8 to DB
/// begin one, and DC to DF end one.
static bool read_digit(JsonString& s, unsigned char byte) {
  const std::optional<std::uint8_t> digit = hex_digit(byte);
  if (!digit) return false;
  s.first = s.digit, s.digit = *digit;
  if (--s.left == 3 && s.is_second && s.digit != 0xD) return false;
  if (s.left == 2) {
    const bool ends_a_pair = s.first == 0xD && s.digit >= 0xC;
    if (ends_a_pair != s.is_second) return false;
    s.is_second = s.first == 0xD && s.digit >= 0x8 && s.digit < 0xC;
  }
  if (s.left == 0)
    s = {.state = s.is_second ? State::second_half : State::between, .is_second = s.is_second};
  return true;
}

bool step_string(JsonString& s, unsigned char byte) {
  switch (s.state) {
    case State::between:
      if (byte != '"' && byte != '\\') return begin_character(s, byte);
      s.state = byte == '"' ? State::end : State::escape;
      return true;
    case State::inside:
      return go_on_in_character(s, byte);
    case State::escape:
      return begin_escape(s, byte);
    case State::digits:
      return read_digit(s, byte);
    case State::second_half:
      s.state = State::escape;
      return byte == '\\';
    case State::end:
      return false;
  }
  return false;
}

}  // namespace t2t
