// UTF-8 that may be broken or cut: where characters begin and end, and a stream that never shows
// half of one.
//
// A byte-level token can end inside a character: "é" is two bytes, an emoji four or more. What is
// printed token by token must wait for the rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "utf8_start.hpp"

namespace t2t {

/// What of a text may go to a terminal: without control characters (an escape sequence begins with
/// one), but for line ends and tabs, and without what is no UTF-8.
std::string without_controls(std::string_view text);

/// Bytes in, whole characters out. What is no UTF-8 comes out as U+FFFD, one for each longest run
/// that could have begun a character, as most decoders do.
class CharacterStream {
 public:
  /// The characters that these bytes complete; what is still incomplete, at most 3 bytes, waits.
  std::string push(std::string_view bytes);
  /// What waits, as U+FFFD: the text has ended.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace t2t
