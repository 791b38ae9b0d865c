// The text of an answer while its tokens come, for a reader who must never see what is taken back.
//
// Two things stand between a token and its text. A token may end inside a character, whose other
// bytes come with the next token. And a text may be asked to end before certain words, its stop
// strings: if "\nUser:" is one, the text ends before it, and no part of it is shown. A stop string
// can be spread over several tokens. So the end of the text is held back as long as it may be the
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

/// Finds stop strings in a text that comes in pieces. What it returns does not depend on how the
/// text is cut.
class StopStrings {
 public:
  /// Throws std::invalid_argument for an empty string.
  explicit StopStrings(std::vector<std::string> strings);

  /// More of the text. Returns what can be shown now: all that is known up to the first stop string
  /// or, without one, up to the longest end that could become one. The first stop string is the one
  /// that is complete first; of two that are complete with the same byte, the longer one. After it
  /// nothing more is returned.
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
  AnswerText(const Bpe& bpe, std::vector<std::string> stops)
      : characters_(bpe), stops_(std::move(stops)) {}

  /// What one more token lets be shown; often nothing. Throws as Bpe::bytes does.
  std::string push(int id) { return stops_.push(characters_.push(id)); }
  /// The answer has ended: the rest, with U+FFFD for a character that was not completed.
  std::string finish();
  /// Whether the answer is to end now, because a stop string has been found.
  bool stopped() const { return stops_.found(); }

 private:
  StreamingDecoder characters_;
  StopStrings stops_;
};

}  // namespace t2t
