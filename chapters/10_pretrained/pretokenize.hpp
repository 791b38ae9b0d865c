// Text into words, before any merging: no token reaches from one word into the next.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// An English ending, letters, digits or signs with the space before them, or space; of several
// spaces before a word, the last belongs to it. Models differ in this pattern, and a tokenizer with
// another one makes other tokens of the same vocabulary. Through PCRE2, since \p{L} needs Unicode's
// tables and (?!…) looks ahead. Characters younger than the installed PCRE2 count as signs. Radford
// et al. 2019, "Language Models are Unsupervised Multitask Learners" (GPT-2), section 2.2.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace t2t {

class PreTokenizer {
 public:
  /// "gpt-2": the pattern above. "smollm": each digit (\p{N}) is a word first, then the pattern on
  /// what lies between. Throws std::runtime_error for another name.
  explicit PreTokenizer(std::string_view name);

  /// Calls use with one word of text after the other; together they are text. Throws
  /// std::runtime_error when text is not UTF-8, with the offset, or PCRE2 gives up.
  void for_each_word(std::string_view text,
                     const std::function<void(std::string_view word)>& use) const;

 private:
  struct Pattern;
  std::shared_ptr<const Pattern> digit_;  // none of "gpt-2"
  std::shared_ptr<const Pattern> word_;
};

}  // namespace t2t
