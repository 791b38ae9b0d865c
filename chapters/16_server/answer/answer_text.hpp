// The text of an answer while its tokens arrive, for a reader who must never see text that is taken
// back.
//
// A token's text is not always known at once. A token may end inside a character, whose other bytes
// come with the next token. And a text may have to end before certain words, its stop strings: if
// "\nUser:" is one, the text ends before it, and no part of it is shown. Because a stop string can
// be spread over several tokens, the end of the text is held back as long as it may be the
// beginning of a stop string:
//
//   stop string "END", tokens  "the E" "N" "ergy"    shown  "the "  ""  "ENergy"
//                              "the E" "N" "D of"    shown  "the "  ""  ""        and the text ends
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/tokenizer/bpe.hpp"

namespace t2t {

/// Finds stop strings in a text that arrives in pieces. Its result does not depend on how the text
/// is cut.
class StopStrings {
 public:
  /// Throws std::invalid_argument for an empty string.
  explicit StopStrings(std::vector<std::string> strings);

  /// Adds a piece. Returns what can be shown now: everything up to the first stop string or,
  /// without one, up to the longest suffix that could become one. The first stop string is the one
  /// completed first; of two completed by the same byte, the longer. After it nothing more is
  /// returned.
  std::string push(std::string_view text);
  /// The text has ended: returns what was held back, unless a stop string was found.
  std::string finish();
  /// Whether a stop string has been found.
  bool found() const { return found_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;  // not shown yet: the beginning of a stop string, so far
  bool found_ = false;
};

/// Whole characters of the tokens of an answer, up to a stop string.
class AnswerText {
 public:
  /// The tokenizer must outlive it. Throws as StopStrings does.
  AnswerText(const Bpe& bpe, std::vector<std::string> stop_strings)
      : characters_(bpe), stop_strings_(std::move(stop_strings)) {}

  /// The text that can be shown after one more token; often none. Throws as Bpe::bytes does.
  std::string push(int id) { return stop_strings_.push(characters_.push(id)); }
  /// The answer has ended: the rest, with U+FFFD for a character that was not completed.
  std::string finish();
  /// Whether the answer must end now, because a stop string has been found.
  bool stopped() const { return stop_strings_.found(); }

 private:
  StreamingDecoder characters_;
  StopStrings stop_strings_;
};

}  // namespace t2t
