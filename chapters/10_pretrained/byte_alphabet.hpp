// How vocabularies of byte-level BPE write bytes: each as one character that can be seen.
//
// The 188 printable bytes of Latin-1 stand for themselves; the other 68, in order, are U+0100 and
// on. A space is Ġ, a line's end Ċ, and "é" its two bytes, Ã©. Only names of tokens look like this;
// text never does. From GPT-2's published encoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace t2t {

/// " é" to "ĠÃ©".
std::string to_byte_alphabet(std::string_view bytes);

/// The way back; none when a character stands for no byte.
std::optional<std::string> from_byte_alphabet(std::string_view token);

}  // namespace t2t
