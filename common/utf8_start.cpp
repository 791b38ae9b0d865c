#include "utf8_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace t2t {

/// The length in bytes of a character that begins with this byte, or 0.
static std::size_t length_after(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return 2;
  if (first >= 0xe0 && first <= 0xef) return 3;
  if (first >= 0xf0 && first <= 0xf4) return 4;
  return 0;
}

Utf8Start utf8_start(std::string_view text) {
  const std::uint8_t first = std::uint8_t(text[0]);
  const std::size_t length = length_after(first);
  if (length == 0) return {Utf8Start::malformed, 1};

  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8Start::cut, i};
    // Some second bytes are excluded: encodings longer than needed, surrogates, and characters
    // above U+10FFFF.
    std::uint8_t low = 0x80, high = 0xbf;
    if (i == 1 && first == 0xe0) low = 0xa0;
    if (i == 1 && first == 0xed) high = 0x9f;
    if (i == 1 && first == 0xf0) low = 0x90;
    if (i == 1 && first == 0xf4) high = 0x8f;
    const std::uint8_t byte = std::uint8_t(text[i]);
    if (byte < low || byte > high) return {Utf8Start::malformed, i};
  }
  return {Utf8Start::whole, length};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Start start = utf8_start(text);
    if (start.kind != Utf8Start::whole) return false;
    text.remove_prefix(start.length);
  }
  return true;
}

std::size_t count_characters(std::string_view text) {
  return std::size_t(std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool is_control(std::string_view character) {
  const std::uint8_t first = std::uint8_t(character[0]);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && std::uint8_t(character[1]) < 0xa0);
}

/// The character, or the malformed bytes, that a text begins with, as it is shown.
static std::string shown_as(std::string_view bytes, Utf8Start::Kind kind) {
  if (kind == Utf8Start::whole && !is_control(bytes)) return std::string(bytes);
  std::string shown;
  for (const char byte : bytes) shown += fmt::format("\\x{:02x}", std::uint8_t(byte));
  return shown;
}

std::string printable(std::string_view text, std::size_t most) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    const std::string piece = shown_as(text.substr(at, start.length), start.kind);
    if (shown.size() + piece.size() > most) return shown + "…";
    shown += piece;
    at += start.length;
  }
  return shown;
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    const std::string_view bytes = text.substr(at, start.length);
    shown += bytes == "\n" || bytes == "\t" ? std::string(bytes) : shown_as(bytes, start.kind);
    at += start.length;
  }
  return shown;
}

}  // namespace t2t
