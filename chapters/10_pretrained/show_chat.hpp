// Talking with a model: one answer, or a conversation from a terminal or a pipe. For main.cpp.
#pragma once

#include <unistd.h>

#include <iostream>
#include <string>

#include "10_pretrained/session.hpp"

namespace t2t {

struct ChatOptions {
  std::string system;  // empty: none
  Generation generation;
  std::size_t context;
};

class Conversation {
 public:
  /// Throws std::runtime_error when the system's turn fills the context.
  Conversation(const Session& session, const ChatOptions& options, Random& random)
      : session_(session),
        options_(options),
        random_(random),
        chat_(session.bpe),
        opening_(chat_.opening(options.system)),
        state_(session.config(), options.context) {
    options_.generation.stops = {chat_.end()};
    if (session.bpe.eos() && *session.bpe.eos() != chat_.end())
      options_.generation.stops.push_back(*session.bpe.eos());
    begin();
    if (needed_for(chat_.question("")) >= state_.S)
      throw std::runtime_error(fmt::format(
          "the system prompt: its {} tokens leave no room for a question in a context of {} "
          "(--context)",
          opening_.size(), state_.S));
  }

  /// Forgets all but the system's turn.
  void begin() {
    reset(state_);
    ids_ = opening_;
    answered_ = false;
  }

  /// Prints the answer as it is made. Throws std::runtime_error for text that is not UTF-8, or too
  /// long for the context, and as generate does. The conversation is then as it was, or begun anew
  /// where its context was full.
  Spoken ask(std::string_view text) {
    const std::vector<int> question = chat_.question(text);
    const std::size_t alone = needed_for(question);
    if (alone >= state_.S)
      throw std::runtime_error(
          fmt::format("{} tokens are too many for a context of {} (--context)", alone, state_.S));
    std::vector<int> more = answered_ ? chat_.after_answer() : std::vector<int>{};
    more.insert(more.end(), question.begin(), question.end());
    if (ids_.size() + more.size() >= state_.S) {
      fmt::print(stderr, "  (the context of {} tokens is full: beginning anew)\n", state_.S);
      begin();
      more = question;
    }
    const std::size_t known = ids_.size(), seen = state_.length();
    try {
      return answer(more);
    } catch (...) {
      ids_.resize(known);
      truncate(state_, seen);
      throw;
    }
  }

 private:
  /// Tokens of a conversation that begins with this question.
  std::size_t needed_for(const std::vector<int>& question) const {
    return opening_.size() + question.size();
  }

  // [answer]
  Spoken answer(const std::vector<int>& more) {
    ids_.insert(ids_.end(), more.begin(), more.end());
    // What the state has seen already stays in its caches: only the rest goes through the model.
    Spoken spoken = speak(session_, state_, std::span(ids_).subspan(state_.length()),
                          options_.generation, random_);
    ids_.insert(ids_.end(), spoken.ids.begin(), spoken.ids.end());
    answered_ = true;
    return spoken;
  }
  // [/answer]

  const Session& session_;
  ChatOptions options_;
  Random& random_;
  ChatTemplate chat_;
  std::vector<int> opening_;  // the system's turn
  ModelState state_;
  std::vector<int> ids_;  // the whole conversation; state_ has seen its first state_.length()
  bool answered_ = false;
};

/// The next line, without its end; false when there is none. Throws std::runtime_error for one that
/// no context could hold: what is no text may never end a line.
inline bool next_line(std::istream& in, std::string& line) {
  constexpr std::size_t most = 1 << 20;
  line.clear();
  for (char c; in.get(c); line += c) {
    if (c == '\n') return true;
    if (line.size() == most)
      throw std::runtime_error(
          "standard input: a line of more than 1 MiB, wanted a question a line");
  }
  return !line.empty();
}

/// Lines from standard input, each a question. Returns false if there were some and all failed.
inline bool converse(const Session& session, const ChatOptions& options, Random& random) {
  Conversation conversation(session, options, random);
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    fmt::print(
        "/reset begins anew, /quit ends; Ctrl-C stops an answer.\n"
        "system: {}\n",
        options.system.empty() ? "(none)" : without_controls(options.system));
  std::size_t answers = 0, failures = 0;
  for (std::string line;;) {
    if (terminal) fmt::print("\n> "), std::fflush(stdout);
    if (!next_line(std::cin, line)) {
      if (terminal) fmt::print("\n");
      break;
    }
    if (line == "/quit") break;
    if (line == "/reset") {
      conversation.begin();
      fmt::print(stderr, "  (begun anew)\n");
      continue;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const Spoken spoken = conversation.ask(line);
      fmt::print(stderr, "  ({})\n", speed_text(spoken));
      if (!terminal) end_if_interrupted(spoken);
      ++answers;
    } catch (const std::exception& error) {
      fmt::print(stderr, "  {}\n", error.what());
      ++failures;
    }
  }
  return answers > 0 || failures == 0;
}

}  // namespace t2t
