// ChatML: how a conversation is written as one text, and how a model's own words are kept apart
// from what anybody types.
//
//   <|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n        and now the model goes on
//
// The marks are control tokens, one id each. What a user types is encoded as text whatever it says:
// a typed <|im_end|> is ten characters, and ends nothing. Other formats are refused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/tokenizer.hpp"

namespace t2t {

/// The system prompt that a file's chat template falls back on; empty when it has none. Throws
/// std::runtime_error, naming the file, when the template is missing or is not ChatML.
std::string default_system_prompt(const GgufFile& file);

class ChatTemplate {
 public:
  /// bpe must outlive it. Throws std::runtime_error when the vocabulary lacks the two marks.
  explicit ChatTemplate(const Bpe& bpe);

  /// <|im_start|>role\ntext<|im_end|>\n
  std::vector<int> turn(std::string_view role, std::string_view text) const;
  /// What a conversation begins with: the system's turn, or nothing when system is empty.
  std::vector<int> opening(std::string_view system) const;
  /// A user's turn, and the head of the answer.
  std::vector<int> question(std::string_view text) const;
  /// What goes between an answer and the next question: <|im_end|>\n. The model's own <|im_end|>
  /// was a stop, and has not been read.
  std::vector<int> after_answer() const;

  int end() const { return end_; }

 private:
  const Bpe& bpe_;
  int start_, end_;
};

}  // namespace t2t
