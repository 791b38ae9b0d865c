// What must be true of the server's door, asked by HTTP as clients do.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "09_language_model/fast/forward.hpp"
#include "16_server/api/headers.hpp"
#include "16_server/server/http_message.hpp"
#include "16_server/server/http_server.hpp"
#include "running.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::http_test {

using namespace std::chrono_literals;
using nlohmann::json;
using std::size_t;

TEST_CASE("by HTTP: an answer, the same in a stream, and cut before a stop string") {
  Running running({}, slow_runner());
  const auto whole = running.post(chat, hello(""));
  CHECK(whole.status == 200);
  const json answer = json::parse(whole.body);
  const std::string text = answer["choices"][0]["message"]["content"];
  CHECK(answer["usage"]["completion_tokens"] == 12);
  CHECK(answer["choices"][0]["finish_reason"] == "length");

  const auto stream = running.post(chat, hello(R"(, "stream": true)"));
  CHECK(stream.headers.at("content-type") == "text/event-stream");
  std::string streamed, reason;
  for (size_t at = 0, end; (end = stream.body.find("\n\n", at)) != std::string::npos;
       at = end + 2) {
    const std::string event = stream.body.substr(at + 6, end - at - 6);
    if (event == "[DONE]") break;
    const json choice = json::parse(event)["choices"][0];
    streamed += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
  }
  CHECK(streamed == text);
  CHECK(reason == "length");
  CHECK(stream.body.ends_with("data: [DONE]\n\n"));

  // A stop string of two characters, and so of two tokens or more: each token is a byte here.
  size_t first = text.size() / 2, last = first;
  const auto is_inside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; };
  while (is_inside(first)) ++first;
  for (last = first + 2; is_inside(last); ++last) {
  }
  const std::string stop = text.substr(first, last - first);
  const auto stopped =
      running.post(chat, hello(R"(, "max_completion_tokens": 150, "stop": )" + json(stop).dump()));
  const json cut = json::parse(stopped.body)["choices"][0];
  CHECK(cut["message"]["content"] == text.substr(0, text.find(stop)));
  CHECK(cut["finish_reason"] == "stop");
  CHECK(at_rest(running.service).cancelled == 1);  // the engine was told
}

TEST_CASE("by HTTP: several answers differ by their seeds, and a prompt goes on") {
  Running running;
  const auto three = running.post(chat, hello(R"(, "n": 3)"));
  const json choices = json::parse(three.body)["choices"];
  REQUIRE(choices.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto one = running.post(chat, hello(R"(, "seed": )" + std::to_string(1 + i)));
    CHECK(json::parse(one.body)["choices"][0]["message"] == choices[i]["message"]);
  }
  const auto more =
      running.post("/v1/completions", R"({"prompt": "ab", "max_tokens": 3, "temperature": 0})");
  CHECK(json::parse(more.body)["usage"]["prompt_tokens"] == 2);
}

/// The log-probabilities of a text's tokens from the second one on, by a pass over all of it.
static std::vector<double> log_p_of(const Ids& ids) {
  const size_t T = ids.size(), V = tiny_served().config().V;
  ModelState state(tiny_served().config(), T);
  Tensor<2> logits = empty(T, V);
  forward_all(tiny_served().model, state, ids, logits);
  std::vector<double> log_p;
  for (size_t t = 1; t < T; ++t) {
    double sum = 0;
    for (size_t v = 0; v < V; ++v) sum += std::exp(double(logits(t - 1, v)));
    log_p.push_back(double(logits(t - 1, size_t(ids[t]))) - std::log(sum));
  }
  return log_p;
}

TEST_CASE(
    "by HTTP: a prompt's log-probabilities without an answer, and again when its pages are known") {
  Running running;
  const std::string text = "To be, or not to be: that is the question.";
  const std::vector<double> want = log_p_of(Ids(text.begin(), text.end()));
  for (const char* more : {"", "", R"(, "stream": true)"}) {
    CAPTURE(more);
    const auto got = running.post("/v1/completions",
                                  R"({"max_tokens": 0, "echo": true, "logprobs": 0, "prompt": )" +
                                      json(text).dump() + more + "}");
    REQUIRE(got.status == 200);
    const bool is_stream = got.body.starts_with("data: ");
    const json choice = json::parse(is_stream ? got.body.substr(6, got.body.find('\n') - 6)
                                              : got.body)["choices"][0];
    CHECK(choice["text"] == text);
    const json logprobs = choice["logprobs"]["token_logprobs"];
    REQUIRE(logprobs.size() == text.size());
    CHECK(logprobs[0].is_null());
    // As in "the logits are those of the formula", and twice as much for a log-probability.
    for (size_t t = 1; t < text.size(); ++t)
      CHECK(std::abs(logprobs[t].get<double>() - want[t - 1]) < 0x1p-24 * 8 * 20 * 10 * 2);
    if (is_stream) continue;
    CHECK(choice["finish_reason"] == "length");
    CHECK(json::parse(got.body)["usage"]["completion_tokens"] == 0);
  }
}

TEST_CASE("by HTTP: several prompts get the answers that each gets by itself") {
  Running running;
  const auto choices = [&](const std::string& prompt) {
    const auto got = running.post(
        "/v1/completions", R"({"n": 2, "seed": 3, "max_tokens": 5, "prompt": )" + prompt + "}");
    REQUIRE(got.status == 200);
    return json::parse(got.body);
  };
  const json both = choices(R"(["Once upon", "The end"])");
  CHECK(both["usage"]["prompt_tokens"] == 16);
  CHECK(both["usage"]["completion_tokens"] == 20);
  REQUIRE(both["choices"].size() == 4);
  for (size_t i = 0; i < 2; ++i) {
    const json alone =
        choices(i == 0 ? R"("Once upon")" : R"([[84, 104, 101, 32, 101, 110, 100]])");
    for (size_t j = 0; j < 2; ++j) {
      CHECK(both["choices"][2 * i + j]["index"] == 2 * i + j);
      CHECK(both["choices"][2 * i + j]["text"] == alone["choices"][j]["text"]);
    }
  }
}

TEST_CASE("by HTTP: what is refused, and how") {
  Running running({}, slow_runner());
  const auto refused = [&](const HttpResult& got, int status, const std::string& message,
                           const json& param = nullptr, const json& code = nullptr) {
    CAPTURE(message);
    CHECK(got.status == status);
    const json body = json::parse(got.body, nullptr, false);
    REQUIRE(body.is_object());
    CHECK(body["error"]["code"] == code);
    CHECK(body["error"]["param"] == param);
    CHECK(body["error"]["message"] == message);
  };
  refused(running.post(chat, hello(R"(, "n": 0)")), 400, "n: wanted an integer from 1 to 8, got 0",
          "n");
  refused(running.post(chat, R"({"messages": [{"role": "tool"}]})"), 400,
          "messages[0].role: wanted system, user or assistant, got \"tool\"", "messages[0].role");
  refused(running.post(chat, hello(R"(, "response_format": {"type": "json_schema",
              "json_schema": {"schema": {"pattern": "a"}}})")),
          400,
          "response_format: schema /pattern: wanted one of type, properties, required, items, "
          "minItems, additionalProperties, maxItems, minLength, maxLength, enum, const, anyOf, "
          "$ref, got "
          "pattern",
          "response_format");
  refused(running.post(chat, hello(R"(, "model": "gpt")")), 404,
          "model: wanted \"tiny\", got \"gpt\"", "model", "model_not_found");
  refused(running.get("/v1/models/gpt"), 404, "model: wanted \"tiny\", got \"gpt\"", "model",
          "model_not_found");
  refused(running.get("/v1/models/" + std::string(8000, 'a')), 404,
          "model: wanted \"tiny\", got \"" + std::string(40, 'a') + "…\"", "model",
          "model_not_found");
  refused(running.post(chat, R"({"messages": [{"role": "user", "content": ")" +
                                 std::string(500, 'x') + "\"}]}"),
          400, "tokens of the prompt: wanted below the 256 that a sequence can have, got 542");
  refused(running.post(chat, std::string((1 << 20) + 1, ' ')), 413,
          "wanted a body of at most 1048576 bytes");
  refused(running.post("/v1/audio", "{}"), 404, "POST /v1/audio: this server has no such path");
  refused(running.client().send("POST", chat, hello(""), {{"Content-Type", "text/plain"}}), 415,
          "Content-Type: wanted application/json");
  std::vector<Request> all(12, Request{.prompt = Ids(20, 3), .max_new_tokens = 200});
  const auto busy = running.service.ask(all);
  const auto more = running.post(chat, hello(""));
  refused(more, 429, "12 sequences are running or waiting already", nullptr, "rate_limit_exceeded");
  CHECK(more.headers.at("retry-after") == "1");
  running.service.cancel(busy);
  at_rest(running.service);
  CHECK(running.get("/health").status == 200);
  running.service.close(0s);
  CHECK(running.get("/health").status == 503);
  refused(running.post(chat, hello("")), 503, "the server is ending, and accepts no more requests");
}

TEST_CASE("media types and schemes in capitals and small letters, and compared as a whole") {
  for (const char* type : {"application/json", "Application/JSON", "application/json;charset=utf-8",
                           " application/json ; charset=utf-8"}) {
    CAPTURE(type);
    CHECK(is_json_type(type));
  }
  for (const char* type : {"", "application/jsonx", "application/json-seq", "text/plain",
                           "application", "text/plain; application/json", "xapplication/json"}) {
    CAPTURE(type);
    CHECK_FALSE(is_json_type(type));
  }
  CHECK(bearer_key("Bearer abc") == "abc");
  CHECK(bearer_key("bEARER  abc ") == "abc");
  CHECK(bearer_key("Bearer a=b c") == "a=b c");
  CHECK(bearer_key("Bearer") == "");
  for (const char* other : {"", "abc", "Bearerabc", "Basic abc", " Bearer abc"})
    CHECK_FALSE(bearer_key(other));
  Running running;
  const std::string body = R"({"prompt": "ab", "max_tokens": 1})";
  const auto status = [&](const char* type) {
    return running.client().send("POST", "/v1/completions", body, {{"Content-Type", type}}).status;
  };
  CHECK(status("Application/JSON; charset=utf-8") == 200);
  CHECK(status("application/jsonx") == 415);
}

TEST_CASE("by HTTP: a key, the model's name, counts, and the page") {
  Running running({.key = "secret"});
  for (const char* wrong : {"", "Bearer secre", "Bearer secrets", "Basic secret", "secret"})
    CHECK(running.get("/v1/models", {{"Authorization", wrong}}).status == 401);
  CHECK(json::parse(running.get("/v1/models").body)["error"]["code"] == "invalid_api_key");
  const auto models = running.get("/v1/models", {{"Authorization", "Bearer secret"}});
  CHECK(json::parse(models.body)["data"][0]["id"] == "tiny");
  const auto one = running.get("/v1/models/tiny", {{"Authorization", "bearer secret"}});
  CHECK(json::parse(one.body) == json::parse(models.body)["data"][0]);
  const auto counts = running.get("/metrics", {{"Authorization", "Bearer secret"}});
  CHECK(counts.body.find("t2t_pages 60\n") != std::string::npos);
  const auto page = running.get("/");
  CHECK(page.status == 200);
  CHECK(page.body.find("<title>Chat</title>") != std::string::npos);
  CHECK(page.body.find("http") == std::string::npos);  // it asks nobody else
  CHECK(running.client().send("HEAD", "/").body.empty());
}

TEST_CASE("a client that goes away in the middle of its answer frees the pages") {
  Running running({}, slow_runner());
  size_t heard = 0;
  running.client().send("POST", chat, hello(R"(, "stream": true, "max_completion_tokens": 180)"),
                        as_json,
                        [&](std::string_view part) { return (heard += part.size()) < 400; });
  const ServiceCounts counts = at_rest(running.service);
  CHECK(counts.cancelled == 1);
  CHECK(counts.pages_free + counts.pages_cached == 60);
}

TEST_CASE("a host and a port are written as in an address") {
  CHECK(host_and_port("127.0.0.1", 8080) == "127.0.0.1:8080");
  CHECK(host_and_port("::1", 80) == "[::1]:80");
}

TEST_CASE("a port that is taken is refused, by host and port") {
  Running running;
  const int port = running.server.port();
  REFUSES_AS(HttpServer(running.service, running.model, {.port = port, .key = {}}),
             "127.0.0.1:" + std::to_string(port) +
                 ": no server can be started there (Address already in use); --port names another "
                 "port",
             std::runtime_error);
}

}  // namespace t2t::http_test
