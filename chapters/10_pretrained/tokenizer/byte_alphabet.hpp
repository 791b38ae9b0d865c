// How vocabularies of byte-level BPE write bytes: each byte as one visible character.
//
// The 188 printable bytes of Latin-1 stand for themselves; the other 68, in order, become U+0100,
// U+0101 and so on. A space is Ġ, a line's end Ċ, and "é" has two bytes, Ã©. Only the names of
// tokens are written so, never a text. From GPT-2's published encoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace t2t {

/// " é" to "ĠÃ©".
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes of such a name; none when one of its characters stands for no byte.
std::optional<std::string> from_byte_alphabet(std::string_view token);

/// The tokens of single bytes, in the bytes' order: a vocabulary of 256 that can write any text.
inline std::vector<std::string> byte_tokens() {
  std::vector<std::string> tokens;  // [256]
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(to_byte_alphabet(std::string(1, char(byte))));
  return tokens;
}

}  // namespace t2t
