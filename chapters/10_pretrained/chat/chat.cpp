#include "10_pretrained/chat/chat.hpp"

#include <stdexcept>

#include "files/files.hpp"

namespace t2t {

/// The marks of both formats. Llama 3 has one more, between a role and its text.
struct Marks {
  std::string_view start, header_end, end;
};
static constexpr Marks chat_ml = {"<|im_start|>", "", "<|im_end|>"};
static constexpr Marks llama3 = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};

std::string default_system_prompt(const GgufFile& file) {
  const std::string_view pattern = file.metadata().text("tokenizer.chat_template");
  const auto has = [&](std::string_view mark) { return pattern.find(mark) != pattern.npos; };
  if (has(llama3.start) && has(llama3.end)) return {};  // it writes today's date, and no more
  if (!has(chat_ml.start) || !has(chat_ml.end))
    throw std::runtime_error(file.name() +
                             ": tokenizer.chat_template: wanted ChatML, with <|im_start|>, or "
                             "Llama 3's format, with <|start_header_id|>");
  // The template is a program. Its default is the one turn whose text it contains literally: after
  // the head comes text and not a closing quote. Some templates write a line's end as \n.
  for (const char* line_end : {"\n", "\\n"}) {
    const std::string head = std::string(chat_ml.start) + "system" + line_end;
    for (std::size_t at = pattern.find(head); at != pattern.npos; at = pattern.find(head, at + 1)) {
      const std::string_view text = pattern.substr(at + head.size());
      if (!text.starts_with('\'') && !text.starts_with('"'))
        return std::string(text.substr(0, text.find(chat_ml.end)));
    }
  }
  return {};
}

static std::optional<int> control_token(const Bpe& bpe, std::string_view name) {
  const std::optional<int> id = bpe.id(name);
  return id && bpe.kind(id.value()) == TokenKind::control ? id : std::nullopt;
}

ChatTemplate::ChatTemplate(const Bpe& bpe) : bpe_(bpe) {
  for (const Marks& marks : {chat_ml, llama3}) {
    const std::optional<int> start = control_token(bpe, marks.start);
    const std::optional<int> end = control_token(bpe, marks.end);
    header_end_ = control_token(bpe, marks.header_end);
    if (!start || !end || header_end_.has_value() == marks.header_end.empty()) continue;
    start_ = *start, end_ = *end;
    return;
  }
  throw std::runtime_error(
      "the vocabulary has no control tokens <|im_start|> and <|im_end|>, nor Llama 3's "
      "<|start_header_id|>, <|end_header_id|> and <|eot_id|>: a chat needs those of one format");
}

static void append(std::vector<int>& ids, const std::vector<int>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

/// A turn without its end. The text between two marks is encoded as one piece.
std::vector<int> ChatTemplate::head(std::string_view role, std::string_view text) const {
  std::vector<int> ids = {start_};
  std::string said(role);
  if (header_end_) {
    append(ids, bpe_.encode(said));
    ids.push_back(*header_end_);
    said = "\n";
  }
  append(ids, bpe_.encode(said + "\n" + std::string(text)));
  return ids;
}

std::vector<int> ChatTemplate::turn(std::string_view role, std::string_view text) const {
  expect_utf8(std::string(role) + "'s text", text);  // an error tells the offset in text
  std::vector<int> ids = head(role, text);
  append(ids, after_answer());
  return ids;
}

std::vector<int> ChatTemplate::opening(std::string_view system) const {
  std::vector<int> ids;
  if (bpe_.first()) ids.push_back(*bpe_.first());
  if (!system.empty()) append(ids, turn("system", system));
  return ids;
}

std::vector<int> ChatTemplate::question(std::string_view text) const {
  std::vector<int> ids = turn("user", text);
  append(ids, head("assistant", ""));
  return ids;
}

std::vector<int> ChatTemplate::after_answer() const {
  std::vector<int> ids = {end_};
  if (!header_end_) append(ids, bpe_.encode("\n"));
  return ids;
}

}  // namespace t2t
