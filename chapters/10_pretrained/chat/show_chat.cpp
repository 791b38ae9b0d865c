#include "10_pretrained/chat/show_chat.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <span>
#include <stdexcept>

#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

Conversation::Conversation(const Session& session, const ChatOptions& options, Random& random)
    : session_(session),
      options_(options),
      random_(random),
      chat_(session.bpe, options.style),
      opening_(chat_.opening(options.system)),
      state_(session.state(options.context)) {
  options_.generation.stop_tokens = session.bpe.ends();
  begin();
  if (needed_for(chat_.question("")) >= state_.S)
    throw std::runtime_error(fmt::format(
        "the system prompt: its {} tokens leave no room for a question in a context of {} "
        "(--context)",
        opening_.size(), state_.S));
}

void Conversation::begin() {
  reset(state_);
  ids_ = opening_;
  answered_ = false;
}

Spoken Conversation::ask(std::string_view text) {
  const std::vector<int> question = chat_.question(text);
  const std::size_t alone = needed_for(question);
  if (alone >= state_.S)
    throw std::runtime_error(
        fmt::format("the question needs {} tokens, more than the context of {} holds (--context)",
                    alone, state_.S));
  std::size_t known = ids_.size();  // how many tokens stay
  std::vector<int> more;
  if (answered_) {
    // Later turns may see the answer in another form than the model said it: it is read anew.
    CharacterStream characters;
    std::string said = characters.push(session_.bpe.said(std::span(ids_).subspan(answer_)));
    said += characters.finish();
    const bool as_said = chat_.written("assistant", said) == said;
    more = as_said ? chat_.after_answer() : chat_.turn("assistant", said);
    if (!as_said) known = answer_ - chat_.answer_head().size();
  }
  more.insert(more.end(), question.begin(), question.end());
  if (known + more.size() >= state_.S) {
    fmt::print(stderr, "  (the context of {} tokens is full: the conversation starts again)\n",
               state_.S);
    begin();
    more = question, known = ids_.size();
  }
  const std::vector<int> before = ids_;
  const std::size_t seen = std::min(state_.length(), known);
  try {
    ids_.resize(known);
    truncate(state_, seen);
    return answer(more);
  } catch (...) {
    ids_ = before;
    truncate(state_, seen);
    throw;
  }
}

// [answer]
Spoken Conversation::answer(const std::vector<int>& more) {
  ids_.insert(ids_.end(), more.begin(), more.end());
  const std::size_t begin = ids_.size();
  // The caches hold what the state has seen; only the rest goes through the model.
  Spoken spoken = speak(session_, state_, std::span(ids_).subspan(state_.length()),
                        options_.generation, random_);
  ids_.insert(ids_.end(), spoken.ids.begin(), spoken.ids.end());
  answer_ = begin, answered_ = true;
  return spoken;
}
// [/answer]

bool next_line(std::istream& in, std::string& line) {
  constexpr std::size_t most = 1 << 20;
  line.clear();
  bool ended = false;
  for (char c; !ended && in.get(c);) {
    ended = c == '\n';
    if (!ended && line.size() == most)
      throw std::runtime_error(
          "standard input: wanted a question on each line, got a line of more than 1 MiB");
    if (!ended) line += c;
  }
  if (!ended && line.empty()) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

bool converse(const Session& session, const ChatOptions& options, Random& random) {
  Conversation conversation(session, options, random);
  if (!options.style.note.empty())
    fmt::print(stderr, "  ({})\n", printable(options.style.note, std::string::npos));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (terminal)
    fmt::print(
        "/reset starts a new conversation, /quit ends the chat, Ctrl-C stops an answer.\n"
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
      fmt::print(stderr, "  (a new conversation)\n");
      continue;
    }
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const Spoken spoken = conversation.ask(line);
      fmt::print(stderr, "  ({})\n", speed_text(spoken));
      if (!terminal) end_if_interrupted(spoken);
      ++answers;
    } catch (const std::exception& error) {
      fmt::print(stderr, "  {}\n", printable(error.what(), std::string::npos));
      ++failures;
    }
  }
  return answers > 0 || failures == 0;
}

}  // namespace t2t
