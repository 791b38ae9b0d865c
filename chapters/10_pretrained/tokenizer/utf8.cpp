#include "10_pretrained/tokenizer/utf8.hpp"

namespace t2t {

static constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

std::string without_controls(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Start start = utf8_start(text.substr(at));
    const std::string_view character = text.substr(at, start.length);
    const bool in_lines = character == "\n" || character == "\t";
    if (start.kind == Utf8Start::whole && (in_lines || !is_control(character))) kept += character;
    at += start.length;
  }
  return kept;
}

std::string CharacterStream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string characters;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Start start = utf8_start(std::string_view(pending_).substr(at));
    if (start.kind == Utf8Start::cut) break;
    characters += start.kind == Utf8Start::whole ? pending_.substr(at, start.length) : replacement;
    at += start.length;
  }
  pending_.erase(0, at);
  return characters;
}

std::string CharacterStream::finish() {
  if (pending_.empty()) return {};
  pending_.clear();
  return std::string(replacement);
}

}  // namespace t2t
