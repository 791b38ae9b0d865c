// A conversation with a model, from a terminal or a pipe. For main.cpp.
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "10_pretrained/chat/session.hpp"

namespace t2t {

struct ChatOptions {
  std::string system;  // empty: none
  Generation generation;
  std::size_t context;
  ChatStyle style = {};
};

class Conversation {
 public:
  /// Throws std::runtime_error when the system's turn fills the context.
  Conversation(const Session& session, const ChatOptions& options, Random& random);

  /// Forgets everything but the system's turn.
  void begin();

  /// Prints the answer while it is generated. Throws std::runtime_error for a text that is not
  /// UTF-8 or too long for the context, and as generate does. The conversation is then as it was
  /// before, or new if its context was full.
  Spoken ask(std::string_view text);

 private:
  /// The number of tokens in a conversation that begins with this question.
  std::size_t needed_for(const std::vector<int>& question) const {
    return opening_.size() + question.size();
  }

  Spoken answer(const std::vector<int>& more);

  const Session& session_;
  ChatOptions options_;
  Random& random_;
  ChatTemplate chat_;
  std::vector<int> opening_;  // the system's turn
  ModelState state_;
  std::vector<int> ids_;  // the whole conversation; state_ has seen the first state_.length()
  bool answered_ = false;
  std::size_t answer_ = 0;  // where the last answer begins in ids_
};

/// Reads the next line, without its end; false when there is none. Throws std::runtime_error for a
/// line of more than 1 MiB: input that is not text may have no line ends.
bool next_line(std::istream& in, std::string& line);

/// Answers the questions on standard input, one on each line. Returns false if all of them failed.
bool converse(const Session& session, const ChatOptions& options, Random& random);

}  // namespace t2t
