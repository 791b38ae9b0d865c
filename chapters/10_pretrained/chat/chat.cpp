#include "10_pretrained/chat/chat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "10_pretrained/tokenizer/unicode.hpp"
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

static bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

/// "28 Nov 2026", as templates write it.
static std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%d %b %Y", std::localtime(&now))};
}

/// The date that a template of Llama 3.1 writes: today, or one that stands in it.
static std::string date_in(std::string_view pattern) {
  const std::string_view begin = "date_string = \"";
  const std::size_t at = pattern.find(begin);
  if (contains(pattern, "strftime_now") || at == pattern.npos) return today();
  const std::string_view date = pattern.substr(at + begin.size());
  return std::string(date.substr(0, date.find('"')));
}

ChatStyle chat_style(const GgufFile& file) {
  default_system_prompt(file);  // is it in one of the two formats?
  const std::string_view pattern = file.metadata().text("tokenizer.chat_template");
  const auto has = [&](std::string_view part) { return contains(pattern, part); };
  const bool is_llama = has(llama3.start), trims = has("trim"), thinks = has("think");
  // Newer models of Qwen have the answer begin with a thought.
  const bool begins_thought = has("assistant\\n<think>") || has("assistant\n<think>");
  if (is_llama && trims && !thinks) {
    const std::string dates = "Cutting Knowledge Date: December 2023\nToday Date: ";
    return {.trims = true,
            .dates = has("Cutting Knowledge Date") ? dates + date_in(pattern) + "\n\n" : ""};
  }
  if (!is_llama && !trims && !has("strftime") && !begins_thought) {
    if (has("</think>") && has("reasoning_content")) return {.drops_thoughts = true};
    if (!thinks && !has("strip")) return {};
  }
  return {.trims = is_llama,
          .note = fmt::format("{}: its chat template is none of those known here (ChatML as in "
                              "SmolLM2 and Qwen 2.5, Qwen 3, Llama 3 and 3.1); {} is used instead",
                              file.name(), is_llama ? "Llama 3's" : "plain ChatML")};
}

static std::optional<int> control_token(const Bpe& bpe, std::string_view name) {
  const std::optional<int> id = bpe.id(name);
  return id && bpe.kind(id.value()) == TokenKind::control ? id : std::nullopt;
}

ChatTemplate::ChatTemplate(const Bpe& bpe, ChatStyle style) : bpe_(bpe), style_(std::move(style)) {
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
  std::vector<int> ids = head(role, written(role, text));
  append(ids, after_answer());
  return ids;
}

std::string ChatTemplate::written(std::string_view role, std::string_view text) const {
  const std::string_view end_of_thought = "</think>";
  const std::size_t thought = text.rfind(end_of_thought);
  if (style_.drops_thoughts && role == "assistant" && thought != text.npos) {
    text.remove_prefix(thought + end_of_thought.size());
    text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  }
  return std::string(style_.trims ? trimmed(text) : text);
}

std::vector<int> ChatTemplate::opening(std::string_view system) const {
  std::vector<int> ids;
  if (bpe_.first()) ids.push_back(*bpe_.first());
  if (!style_.dates.empty()) {
    expect_utf8("system's text", system);
    append(ids, head("system", style_.dates + written("system", system)));
    append(ids, after_answer());
  } else if (!system.empty()) {
    append(ids, turn("system", system));
  }
  return ids;
}

std::vector<int> ChatTemplate::question(std::string_view text) const {
  std::vector<int> ids = turn("user", text);
  append(ids, answer_head());
  return ids;
}

std::vector<int> ChatTemplate::conversation(std::span<const ChatMessage> messages,
                                            std::string_view default_system) const {
  const bool has_system = messages.front().role == "system";
  std::vector<int> ids = opening(has_system ? std::string_view(messages[0].text) : default_system);
  // A message without a text is a turn all the same.
  if (has_system && messages[0].text.empty() && style_.dates.empty())
    append(ids, turn("system", ""));
  for (std::size_t i = has_system; i + 1 < messages.size(); ++i)
    append(ids, turn(messages[i].role, messages[i].text));
  append(ids, question(messages.back().text));
  return ids;
}

std::vector<int> ChatTemplate::after_answer() const {
  std::vector<int> ids = {end_};
  if (!header_end_) append(ids, bpe_.encode("\n"));
  return ids;
}

}  // namespace t2t
