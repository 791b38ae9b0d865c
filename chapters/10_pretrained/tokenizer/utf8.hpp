// UTF-8 that may be broken or cut: a stream that returns whole characters only.
//
// A byte-level token can end inside a character: "é" has two bytes, an emoji four or more. Text
// that is printed token by token must wait for the rest of the character.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "utf8_start.hpp"

namespace t2t {

/// A text for a terminal: line ends and tabs stay, other control characters (an escape sequence
/// begins with one) and bytes that are not UTF-8 are removed.
std::string without_controls(std::string_view text);

/// Bytes in, whole characters out. Bytes that are not UTF-8 become U+FFFD, one for each longest run
/// that could begin a character.
class CharacterStream {
 public:
  /// The characters that these bytes complete. Up to 3 bytes of an incomplete one are kept.
  std::string push(std::string_view bytes);
  /// At the end of a text: U+FFFD if an incomplete character is left.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace t2t
