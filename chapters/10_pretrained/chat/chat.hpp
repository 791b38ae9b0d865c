// How a conversation is written as one text, in which the marks between speakers cannot be typed.
// There are two formats, each as its models were trained:
//
//   ChatML    <|im_start|>user\nHello<|im_end|>\n
//             <|im_start|>assistant\n                                    SmolLM2, Qwen
//   Llama 3   <|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>
//             <|start_header_id|>assistant<|end_header_id|>\n\n
//
// and the model continues from there. The marks are control tokens, one id each. A user's text is
// always encoded as plain text: a typed <|im_end|> is ten characters and ends nothing. Other
// formats are refused.
//
// A file's chat template is a program, which may do more: see ChatStyle. It is not run here, but
// recognized by its contents.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/model/tokenizer.hpp"

namespace t2t {

/// The system prompt that a file's chat template uses by default; empty when it has none. Throws
/// std::runtime_error, naming the file, when the template is missing or of neither format.
std::string default_system_prompt(const GgufFile& file);

/// What a chat template does beyond its marks.
struct ChatStyle {
  bool trims = false;           // Llama 3: a text loses the spaces at both of its ends
  bool drops_thoughts = false;  // Qwen 3: earlier answers lose all up to </think>
  std::string dates = {};       // Llama 3.1: begins the system's turn, which always exists
  std::string note = {};        // for the user, when the template is not one of those known here
};
/// The style of the file's chat template. Throws as default_system_prompt does.
ChatStyle chat_style(const GgufFile& file);

struct ChatMessage {
  std::string role, text;
};

class ChatTemplate {
 public:
  /// Uses the format whose marks are in the vocabulary. bpe must outlive it. Throws
  /// std::runtime_error when it contains neither format's marks.
  explicit ChatTemplate(const Bpe& bpe, ChatStyle style = {});

  /// <|im_start|>role\ntext<|im_end|>\n
  std::vector<int> turn(std::string_view role, std::string_view text) const;
  /// The beginning of a conversation: the bos token if the model's texts begin with it, then the
  /// system's turn unless system is empty.
  std::vector<int> opening(std::string_view system) const;
  /// A user's turn, then the beginning of the assistant's turn.
  std::vector<int> question(std::string_view text) const;
  /// <|im_start|>assistant\n
  std::vector<int> answer_head() const { return head("assistant", ""); }
  /// A conversation that ends with a user's message, up to where the answer begins. Unless a system
  /// message comes first, it begins with the default.
  std::vector<int> conversation(std::span<const ChatMessage> messages,
                                std::string_view default_system) const;
  /// The ids between an answer and the next question: <|im_end|>\n. The model's own <|im_end|>
  /// ended the generation and has not gone through the model.
  std::vector<int> after_answer() const;

  int end() const { return end_; }
  /// A text as it is written between the marks.
  std::string written(std::string_view role, std::string_view text) const;

 private:
  std::vector<int> head(std::string_view role, std::string_view text) const;

  const Bpe& bpe_;
  ChatStyle style_;
  int start_, end_;
  std::optional<int> header_end_;  // only in Llama 3's format
};

}  // namespace t2t
