#include "16_server/api/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "utf8_start.hpp"

namespace t2t {

// With this type the fields of an object stay in the order in which they are written.
using json = nlohmann::ordered_json;

/// A text that is not UTF-8, such as a token that is a part of a character, gets U+FFFD.
static std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}
static std::string event_of(const json& value) { return "data: " + text_of(value) + "\n\n"; }

/// JSON has no infinity: clients expect −9999 for a forbidden token.
static double finite(double log_p) { return std::max(log_p, -9999.0); }

static json logprob_json(const TokenLogprob& one, const Bpe& bpe) {
  const std::string& bytes = bpe.bytes(one.id);
  return {{"token", bytes},
          {"logprob", finite(one.log_p)},
          {"bytes", std::vector<std::uint8_t>(bytes.begin(), bytes.end())}};
}

static json chat_logprobs(std::span<const AnswerDelta> pieces, const Bpe& bpe) {
  json content = json::array();
  for (const AnswerDelta& piece : pieces) {
    if (!piece.logprobs) continue;
    json token = logprob_json(piece.logprobs->token, bpe);
    token["top_logprobs"] = json::array();
    for (const TokenLogprob& other : piece.logprobs->likeliest)
      token["top_logprobs"].push_back(logprob_json(other, bpe));
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

/// A token in a completion's lists. Parts of characters are written as "bytes:\xe2\x82", so that
/// each has a name of its own.
static std::string name_of(const std::string& bytes) {
  if (is_utf8(bytes)) return bytes;
  std::string name = "bytes:";
  for (const char byte : bytes) name += fmt::format("\\x{:02x}", std::uint8_t(byte));
  return name;
}

static json empty_lists() {
  return {{"tokens", json::array()},
          {"token_logprobs", json::array()},
          {"top_logprobs", json::array()},
          {"text_offset", json::array()}};
}

/// Adds a token to a completion's lists. The likeliest ones always have the token itself, too.
static void add_logprobs(json& lists, const TokenLogprobs& one, std::size_t offset,
                         const Bpe& bpe) {
  json likeliest = json::object();
  for (const TokenLogprob& other : one.likeliest)
    likeliest.emplace(name_of(bpe.bytes(other.id)), finite(other.log_p));
  const std::string name = name_of(bpe.bytes(one.token.id));
  likeliest.emplace(name, finite(one.token.log_p));
  lists["tokens"].push_back(name);
  lists["token_logprobs"].push_back(finite(one.token.log_p));
  lists["top_logprobs"].push_back(std::move(likeliest));
  lists["text_offset"].push_back(offset);
}

/// Adds a prompt. Nothing says how likely its first token was.
static void add_prompt(json& lists, const ApiRequest& api_request, std::span<const int> prompt,
                       std::span<const TokenLogprobs> logprobs, const Bpe& bpe) {
  lists["tokens"].push_back(name_of(bpe.bytes(prompt[0])));
  lists["token_logprobs"].push_back(nullptr);
  lists["top_logprobs"].push_back(nullptr);
  lists["text_offset"].push_back(0);
  std::size_t offset = 0;
  for (std::size_t t = 1; t < prompt.size(); ++t) {
    if (t > api_request.added_tokens) offset += count_characters(bpe.bytes(prompt[t - 1]));
    add_logprobs(lists, logprobs[t - 1], offset, bpe);
  }
}

json Reply::logprobs_json(std::size_t answer, std::span<const AnswerDelta> pieces) const {
  if (!api_request_.top_logprobs) return nullptr;
  const Bpe& bpe = served_.session.bpe;
  if (api_request_.endpoint == Endpoint::chat_completions) return chat_logprobs(pieces, bpe);
  json lists = empty_lists();
  for (const AnswerDelta& piece : pieces) {
    if (piece.prompt)
      add_prompt(lists, api_request_, api_request_.request_of(answer).prompt, *piece.prompt, bpe);
    if (piece.logprobs)
      add_logprobs(lists, *piece.logprobs, answers_[answer].offset + piece.offset, bpe);
  }
  return lists;
}

static json text_or_null(std::string_view text) { return text.empty() ? json() : json(text); }

static json usage_json(const ApiRequest& api_request, std::size_t tokens) {
  const std::size_t prompt = api_request.prompt_tokens();
  return {
      {"prompt_tokens", prompt}, {"completion_tokens", tokens}, {"total_tokens", prompt + tokens}};
}

/// The beginning of all replies to a request.
static json head_json(const std::string& id, std::string_view object, std::int64_t created,
                      const ServedModel& served) {
  return {{"id", id}, {"object", object}, {"created", created}, {"model", served.name}};
}

Reply::Reply(const ApiRequest& api_request, const ServedModel& served, std::uint64_t number,
             std::int64_t created)
    : api_request_(api_request),
      served_(served),
      id_(fmt::format("{}-{:x}-{}",
                      api_request.endpoint == Endpoint::chat_completions ? "chatcmpl" : "cmpl",
                      created, number)),
      created_(created),
      answers_(api_request.all_answers()) {
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    answers_[i].offset = count_characters(api_request.text_of(i));
    if (api_request.echo) answers_[i].text = api_request.text_of(i);
  }
}

void Reply::add(const AnswerDelta& piece) {
  Collected& answer = answers_.at(piece.answer);
  answer.text += piece.text;
  if (piece.logprobs || piece.prompt) answer.with_logprobs.push_back(piece);
  if (!piece.reason.empty()) answer.reason = piece.reason;
}

std::string Reply::whole(std::size_t tokens) const {
  const bool is_chat = api_request_.endpoint == Endpoint::chat_completions;
  json reply = head_json(id_, is_chat ? "chat.completion" : "text_completion", created_, served_);
  reply["choices"] = json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    json choice = {{"index", i}};
    if (is_chat)
      choice["message"] = {
          {"role", "assistant"}, {"content", answers_[i].text}, {"refusal", nullptr}};
    else
      choice["text"] = answers_[i].text;
    choice["logprobs"] = logprobs_json(i, answers_[i].with_logprobs);
    choice["finish_reason"] = answers_[i].reason;
    reply["choices"].push_back(std::move(choice));
  }
  reply["usage"] = usage_json(api_request_, tokens);
  return text_of(reply);
}

/// One event of a stream, with one answer's part in it.
static std::string piece_event(json head, const ApiRequest& api_request, std::size_t answer,
                               json said, json logprobs, const std::string& reason) {
  const bool is_chat = api_request.endpoint == Endpoint::chat_completions;
  json choice = {{"index", answer}};
  choice[is_chat ? "delta" : "text"] = std::move(said);
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = text_or_null(reason);
  head["choices"] = json::array({std::move(choice)});
  return event_of(head);
}

std::string Reply::stream_begin() const {
  std::string events;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    if (api_request_.endpoint == Endpoint::chat_completions)
      events += piece_event(stream_head(), api_request_, i,
                            {{"role", "assistant"}, {"content", ""}}, nullptr, "");
    else if (api_request_.echo && !api_request_.top_logprobs)
      events += piece_event(stream_head(), api_request_, i, answers_[i].text, nullptr, "");
  }
  return events;
}

json Reply::stream_head() const {
  const bool is_chat = api_request_.endpoint == Endpoint::chat_completions;
  json head =
      head_json(id_, is_chat ? "chat.completion.chunk" : "text_completion", created_, served_);
  if (api_request_.usage_at_end) head["usage"] = nullptr;  // until the end
  return head;
}

std::string Reply::stream_piece(const AnswerDelta& piece) const {
  const std::size_t i = piece.answer;
  std::string events;
  if (piece.prompt) {
    const AnswerDelta echoed{.answer = i, .text = {}, .prompt = piece.prompt};
    events = piece_event(stream_head(), api_request_, i, answers_[i].text,
                         logprobs_json(i, {&echoed, 1}), "");
  }
  if (piece.text.empty() && !piece.logprobs && piece.reason.empty()) return events;
  json said = piece.text;
  if (api_request_.endpoint == Endpoint::chat_completions)
    said = piece.text.empty() ? json::object() : json{{"content", piece.text}};
  AnswerDelta own = piece;
  own.prompt.reset();
  return events + piece_event(stream_head(), api_request_, i, std::move(said),
                              own.logprobs ? logprobs_json(i, {&own, 1}) : json(), piece.reason);
}

std::string Reply::stream_end(std::size_t tokens) const {
  std::string events;
  if (api_request_.usage_at_end) {
    json usage = stream_head();
    usage["choices"] = json::array();
    usage["usage"] = usage_json(api_request_, tokens);
    events = event_of(usage);
  }
  return events + "data: [DONE]\n\n";
}

static json error_value(int status, std::string_view message, std::string_view param,
                        std::string_view code) {
  const char* type = status == 429  ? "rate_limit_error"
                     : status < 500 ? "invalid_request_error"
                                    : "server_error";
  if (status == 401) code = "invalid_api_key";
  if (status == 429) code = "rate_limit_exceeded";
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", text_or_null(param)},
            {"code", text_or_null(code)}}}};
}
std::string error_json(int status, std::string_view message, std::string_view param,
                       std::string_view code) {
  return text_of(error_value(status, message, param, code));
}
std::string stream_error(std::string_view message) {
  return event_of(error_value(500, message, {}, {}));
}

static json model_value(const ServedModel& served) {
  return {{"id", served.name}, {"object", "model"}, {"created", 0}, {"owned_by", "a file"}};
}
std::string model_json(const ServedModel& served) { return text_of(model_value(served)); }
std::string models_json(const ServedModel& served) {
  return text_of({{"object", "list"}, {"data", json::array({model_value(served)})}});
}

}  // namespace t2t
