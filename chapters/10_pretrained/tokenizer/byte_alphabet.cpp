#include "10_pretrained/tokenizer/byte_alphabet.hpp"

#include <array>
#include <cstdint>

#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

static bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
}

/// The code point that stands for each byte.
static std::array<int, 256> make_code_points() {
  std::array<int, 256> code_points{};
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    code_points[byte] = stands_for_itself(byte) ? byte : next++;
  return code_points;
}

/// The byte for each code point, or −1. The last one that is used is U+0143.
static std::array<int, 0x144> make_bytes(const std::array<int, 256>& code_points) {
  std::array<int, 0x144> bytes;
  bytes.fill(-1);
  for (int byte = 0; byte < 256; ++byte) bytes[code_points[byte]] = byte;
  return bytes;
}

static const std::array<int, 256> code_points = make_code_points();
static const std::array<int, 0x144> bytes_of = make_bytes(code_points);

std::string to_byte_alphabet(std::string_view bytes) {
  std::string token;
  for (const char byte : bytes) {
    const int code_point = code_points[std::uint8_t(byte)];
    if (code_point < 0x80) {
      token += char(code_point);
    } else {
      token += char(0xc0 | code_point >> 6);
      token += char(0x80 | (code_point & 0x3f));
    }
  }
  return token;
}

std::optional<std::string> from_byte_alphabet(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    // All code points below 0x144 take one byte or two.
    const Utf8Start start = utf8_start(token);
    if (start.kind != Utf8Start::whole || start.length > 2) return std::nullopt;
    const int first = std::uint8_t(token[0]);
    const int code_point = start.length == 1 ? first : (first & 0x1f) << 6 | (token[1] & 0x3f);
    if (code_point >= int(bytes_of.size()) || bytes_of[code_point] < 0) return std::nullopt;
    bytes += char(bytes_of[code_point]);
    token.remove_prefix(start.length);
  }
  return bytes;
}

}  // namespace t2t
