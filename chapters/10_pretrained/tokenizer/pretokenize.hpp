// Cuts a text into words before any merging: no token crosses from one word into the next.
//
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A word is an English ending, or letters, digits or other signs with one space before them, or
// spaces; of several spaces before a word, the last belongs to it. This is GPT-2's pattern. Other
// models have others, and with the same vocabulary another pattern gives other tokens:
//
//   gpt-2      the pattern above
//   smollm     each digit (\p{N}) is a word; the pattern above for the text between digits
//   llama-bpe  endings in capitals too; letters with any one character before them that is no
//              letter, digit or line end (a space, too); at most three digits, no space with them;
//              signs with a space before and the line ends after them; space up to and with line
//              ends is a word
//   qwen2      as llama-bpe, but each digit alone; the text is first put into Unicode's normal form
//              C (unicode.hpp)
//   gpt-4o, deepseek-llm, deepseek-v3    see later_patterns.hpp
//
// PCRE2 is used because \p{L} needs Unicode's tables and (?!…) looks ahead. Characters that are
// newer than the installed PCRE2 count as signs. Radford et al. 2019, "Language Models are
// Unsupervised Multitask Learners" (GPT-2), section 2.2.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace t2t {

class PreTokenizer {
 public:
  /// By the name in a model's file. Throws std::runtime_error for a name that is not listed above.
  explicit PreTokenizer(std::string_view name);

  using UseWord = std::function<void(std::string_view word)>;

  /// Calls use for each word in order; all words together are the text. Each pattern cuts what the
  /// patterns before it have left, into its matches and what is between them. Throws
  /// std::runtime_error when text is not UTF-8, with the offset, or when PCRE2 fails.
  void for_each_word(std::string_view text, const UseWord& use) const;

  /// Whether a word that is itself a token is used without merging.
  bool whole_words() const;
  /// Whether a text begins with the bos token, unless the file says otherwise.
  bool bos_first() const;
  /// Whether a text is put into NFC before it is cut: the caller does it.
  bool in_nfc() const;

 private:
  struct Kind;
  static const Kind kinds[];
  static const Kind& kind_of(std::string_view name);
  struct Pattern;

  void cut(std::string_view part, std::size_t step, const UseWord& use) const;

  const Kind* kind_;
  std::vector<std::shared_ptr<const Pattern>> patterns_;
};

}  // namespace t2t
