#include "16_server/answer/answer_text.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace t2t {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& stop : strings_)
    if (stop.empty()) throw std::invalid_argument("a stop string: wanted text, got none");
}

/// How many bytes at the end of the text are the beginning of a stop string, at most.
static std::size_t held_bytes(std::string_view text, const std::vector<std::string>& strings) {
  std::size_t most = 0;
  for (const std::string& stop : strings)
    for (std::size_t n = std::min(stop.size() - 1, text.size()); n > most; --n)
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = n;
  return most;
}

std::string StopStrings::push(std::string_view text) {
  if (found_) return {};
  held_ += text;
  std::size_t begin = held_.size(), end = std::string::npos;  // of the first stop string
  for (const std::string& stop : strings_) {
    const std::size_t at = held_.find(stop);
    if (at == std::string::npos || at + stop.size() > end) continue;
    begin = at + stop.size() < end ? at : std::min(begin, at);
    end = at + stop.size(), found_ = true;
  }
  const std::size_t shown = found_ ? begin : held_.size() - held_bytes(held_, strings_);
  std::string now = held_.substr(0, shown);
  held_.erase(0, found_ ? std::string::npos : shown);
  return now;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

std::string AnswerText::finish() {
  std::string rest = stop_strings_.push(characters_.finish());
  return rest + stop_strings_.finish();
}

}  // namespace t2t
