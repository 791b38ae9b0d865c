#include "15_serving/api/reply.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace t2t {

// With this type the fields of an object stay in the order in which they are written.
using json = nlohmann::ordered_json;

/// A text that is not UTF-8, such as a token that is a part of a character, gets U+FFFD.
static std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}
static std::string event_of(const json& value) { return "data: " + text_of(value) + "\n\n"; }

static json score_json(const TokenScore& score, const Bpe& bpe) {
  const std::string& bytes = bpe.bytes(score.id);
  // JSON has no infinity: clients take −9999 for a token that was forbidden.
  return {{"token", bytes},
          {"logprob", std::max(score.log_p, -9999.0)},
          {"bytes", std::vector<std::uint8_t>(bytes.begin(), bytes.end())}};
}

static json chat_scores(const std::vector<TokenScores>& scores, const Bpe& bpe) {
  json content = json::array();
  for (const TokenScores& one : scores) {
    json token = score_json(one.token, bpe);
    token["top_logprobs"] = json::array();
    for (const TokenScore& other : one.likeliest)
      token["top_logprobs"].push_back(score_json(other, bpe));
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

static json completion_scores(const std::vector<TokenScores>& scores, const Bpe& bpe) {
  json tokens = json::array(), log_p = json::array(), likeliest = json::array();
  for (const TokenScores& one : scores) {
    tokens.push_back(bpe.bytes(one.token.id));
    log_p.push_back(std::max(one.token.log_p, -9999.0));
    json others = json::object();
    for (const TokenScore& other : one.likeliest)
      others[bpe.bytes(other.id)] = std::max(other.log_p, -9999.0);
    likeliest.push_back(std::move(others));
  }
  return {{"tokens", tokens}, {"token_logprobs", log_p}, {"top_logprobs", likeliest}};
}

static json scores_json(const Ask& ask, const std::vector<TokenScores>& scores, const Bpe& bpe) {
  if (!ask.likeliest) return nullptr;
  return ask.endpoint == Endpoint::chat_completions ? chat_scores(scores, bpe)
                                                    : completion_scores(scores, bpe);
}

static json text_or_null(std::string_view text) { return text.empty() ? json() : json(text); }

static json usage_json(const Ask& ask, std::size_t tokens) {
  const std::size_t prompt = ask.request.prompt.size();
  return {
      {"prompt_tokens", prompt}, {"completion_tokens", tokens}, {"total_tokens", prompt + tokens}};
}

/// What all replies to a request begin with.
static json head_json(const std::string& id, std::string_view object, std::int64_t created,
                      const ServedModel& served) {
  return {{"id", id}, {"object", object}, {"created", created}, {"model", served.name}};
}

Reply::Reply(const Ask& ask, const ServedModel& served, std::uint64_t number, std::int64_t created)
    : ask_(ask),
      served_(served),
      id_(fmt::format("{}-{:x}-{}",
                      ask.endpoint == Endpoint::chat_completions ? "chatcmpl" : "cmpl", created,
                      number)),
      created_(created),
      answers_(ask.answers) {
  if (!ask.echo) return;
  for (Collected& answer : answers_) answer.text = served.session.bpe.decode(ask.request.prompt);
}

void Reply::add(const AnswerPiece& piece) {
  Collected& answer = answers_.at(piece.answer);
  answer.text += piece.text;
  if (piece.scores) answer.scores.push_back(*piece.scores);
  if (!piece.reason.empty()) answer.reason = piece.reason;
}

std::string Reply::whole(std::size_t tokens) const {
  const bool is_chat = ask_.endpoint == Endpoint::chat_completions;
  json reply = head_json(id_, is_chat ? "chat.completion" : "text_completion", created_, served_);
  reply["choices"] = json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    json choice = {{"index", i}};
    if (is_chat)
      choice["message"] = {
          {"role", "assistant"}, {"content", answers_[i].text}, {"refusal", nullptr}};
    else
      choice["text"] = answers_[i].text;
    choice["logprobs"] = scores_json(ask_, answers_[i].scores, served_.session.bpe);
    choice["finish_reason"] = answers_[i].reason;
    reply["choices"].push_back(std::move(choice));
  }
  reply["usage"] = usage_json(ask_, tokens);
  return text_of(reply);
}

/// One event of a stream, with one answer's part in it.
static std::string piece_event(json head, const Ask& ask, std::size_t answer, json said,
                               json scores, const std::string& reason) {
  const bool is_chat = ask.endpoint == Endpoint::chat_completions;
  json choice = {{"index", answer}};
  choice[is_chat ? "delta" : "text"] = std::move(said);
  choice["logprobs"] = std::move(scores);
  choice["finish_reason"] = text_or_null(reason);
  head["choices"] = json::array({std::move(choice)});
  return event_of(head);
}

std::string Reply::stream_begin() const {
  std::string events;
  for (std::size_t i = 0; i < ask_.answers; ++i) {
    if (ask_.endpoint == Endpoint::chat_completions)
      events += piece_event(stream_head(), ask_, i, {{"role", "assistant"}, {"content", ""}},
                            nullptr, "");
    else if (ask_.echo)
      events += piece_event(stream_head(), ask_, i, answers_[i].text, nullptr, "");
  }
  return events;
}

nlohmann::ordered_json Reply::stream_head() const {
  const bool is_chat = ask_.endpoint == Endpoint::chat_completions;
  return head_json(id_, is_chat ? "chat.completion.chunk" : "text_completion", created_, served_);
}

std::string Reply::stream_piece(const AnswerPiece& piece) const {
  if (piece.text.empty() && !piece.scores && piece.reason.empty()) return {};
  json said = piece.text;
  if (ask_.endpoint == Endpoint::chat_completions)
    said = piece.text.empty() ? json::object() : json{{"content", piece.text}};
  json scores = nullptr;
  if (piece.scores) scores = scores_json(ask_, {*piece.scores}, served_.session.bpe);
  return piece_event(stream_head(), ask_, piece.answer, std::move(said), std::move(scores),
                     piece.reason);
}

std::string Reply::stream_end(std::size_t tokens) const {
  std::string events;
  if (ask_.usage_at_end) {
    json usage = stream_head();
    usage["choices"] = json::array();
    usage["usage"] = usage_json(ask_, tokens);
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
