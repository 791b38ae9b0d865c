#include "10_pretrained/chat.hpp"

#include <stdexcept>

#include "files.hpp"

namespace t2t {

static constexpr std::string_view start_mark = "<|im_start|>", end_mark = "<|im_end|>";

std::string default_system_prompt(const GgufFile& file) {
  const std::string_view pattern = file.metadata().text("tokenizer.chat_template");
  if (pattern.find(start_mark) == pattern.npos || pattern.find(end_mark) == pattern.npos)
    throw std::runtime_error(file.name() +
                             ": tokenizer.chat_template: wanted ChatML, with <|im_start|>");
  // The template is a program; its fallback is the one turn that it spells out in full.
  const std::string head = std::string(start_mark) + "system\n";
  const std::size_t at = pattern.find(head);
  if (at == pattern.npos) return {};
  const std::string_view rest = pattern.substr(at + head.size());
  return std::string(rest.substr(0, rest.find(end_mark)));
}

static int mark(const Bpe& bpe, std::string_view name) {
  const std::optional<int> id = bpe.id(name);
  if (!id || bpe.kind(*id) != TokenKind::control)
    throw std::runtime_error("the vocabulary has no control token " + std::string(name) +
                             ", which a chat needs");
  return *id;
}

ChatTemplate::ChatTemplate(const Bpe& bpe)
    : bpe_(bpe), start_(mark(bpe, start_mark)), end_(mark(bpe, end_mark)) {}

static void append(std::vector<int>& ids, const std::vector<int>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

std::vector<int> ChatTemplate::turn(std::string_view role, std::string_view text) const {
  expect_utf8(std::string(role) + "'s text", text);  // its own offsets, not those of the turn
  std::vector<int> ids = {start_};
  append(ids, bpe_.encode(std::string(role) + "\n" + std::string(text)));
  append(ids, after_answer());
  return ids;
}

std::vector<int> ChatTemplate::opening(std::string_view system) const {
  return system.empty() ? std::vector<int>{} : turn("system", system);
}

std::vector<int> ChatTemplate::question(std::string_view text) const {
  std::vector<int> ids = turn("user", text);
  ids.push_back(start_);
  append(ids, bpe_.encode("assistant\n"));
  return ids;
}

std::vector<int> ChatTemplate::after_answer() const {
  std::vector<int> ids = {end_};
  append(ids, bpe_.encode("\n"));
  return ids;
}

}  // namespace t2t
