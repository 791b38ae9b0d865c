// How a conversation is written as one text, and how a model's own words are kept apart from what
// anybody types. Two formats, each as its models were trained:
//
//   ChatML    <|im_start|>user\nHello<|im_end|>\n
//             <|im_start|>assistant\n                                    SmolLM2, Qwen
//   Llama 3   <|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>
//             <|start_header_id|>assistant<|end_header_id|>\n\n
//
// and there the model goes on. The marks are control tokens, one id each. What a user types is
// encoded as text whatever it says: a typed <|im_end|> is ten characters, and ends nothing. Other
// formats are refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/tokenizer.hpp"

namespace t2t {

/// The system prompt that a file's chat template falls back on; empty when it has none. Throws
/// std::runtime_error, naming the file, when the template is missing or is neither format's.
std::string default_system_prompt(const GgufFile& file);

class ChatTemplate {
 public:
  /// The format whose marks the vocabulary has. bpe must outlive it. Throws std::runtime_error when
  /// it has neither's.
  explicit ChatTemplate(const Bpe& bpe);

  /// <|im_start|>role\ntext<|im_end|>\n
  std::vector<int> turn(std::string_view role, std::string_view text) const;
  /// What a conversation begins with: the bos token if the model wants it, and the system's turn
  /// unless system is empty.
  std::vector<int> opening(std::string_view system) const;
  /// A user's turn, and the head of the answer.
  std::vector<int> question(std::string_view text) const;
  /// What goes between an answer and the next question: <|im_end|>\n. The model's own <|im_end|>
  /// was a stop, and has not been read.
  std::vector<int> after_answer() const;

  int end() const { return end_; }

 private:
  std::vector<int> head(std::string_view role, std::string_view text) const;

  const Bpe& bpe_;
  int start_, end_;
  std::optional<int> header_end_;  // Llama 3's
};

}  // namespace t2t
