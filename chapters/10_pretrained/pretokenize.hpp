// Text into words, before any merging: no token reaches from one word into the next.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// An English ending, letters, digits or signs with the space before them, or space; of several
// spaces before a word, the last belongs to it. This is GPT-2's pattern. Models differ in theirs,
// and a tokenizer with another one makes other tokens of the same vocabulary:
//
//   gpt-2      the pattern above
//   smollm     each digit (\p{N}) is a word first, then that pattern on what lies between
//   llama-bpe  endings in capitals too; letters with any one character before them that is no
//              letter, digit or line end (a space, too); at most three digits, no space with them;
//              signs with a space before and the line ends after them; space up to and with line
//              ends is a word
//   qwen2      as llama-bpe, but each digit alone
//
// Qwen's own tokenizer also puts text into Unicode's form NFC first, which is not done here.
// Through PCRE2, since \p{L} needs Unicode's tables and (?!…) looks ahead. Characters younger than
// the installed PCRE2 count as signs. Radford et al. 2019, "Language Models are Unsupervised
// Multitask Learners" (GPT-2), section 2.2.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

namespace t2t {

class PreTokenizer {
 public:
  /// By the name in a model's file. Throws std::runtime_error for one that is not among the above.
  explicit PreTokenizer(std::string_view name);

  /// Calls use for each word in order; joined, the words are the text. Throws
  /// std::runtime_error when text is not UTF-8, with the offset, or PCRE2 gives up.
  void for_each_word(std::string_view text,
                     const std::function<void(std::string_view word)>& use) const;

  /// Whether a word that is itself a token is taken whole, whatever merging would make of it.
  bool whole_words() const;
  /// Whether a text begins with the bos token, unless the file says otherwise.
  bool bos_first() const;

 private:
  struct Kind;
  static const Kind kinds[];
  static const Kind& kind_of(std::string_view name);
  struct Pattern;

  const Kind* kind_;
  std::shared_ptr<const Pattern> digit_;  // where digits are words first
  std::shared_ptr<const Pattern> word_;
};

}  // namespace t2t
