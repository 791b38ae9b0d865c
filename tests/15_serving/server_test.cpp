// What must be true of the server: of its thread, and of its door, asked by HTTP.
#include <doctest/doctest.h>
#include <httplib.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "09_language_model/forward.hpp"
#include "15_serving/answer/answering.hpp"
#include "15_serving/api/headers.hpp"
#include "15_serving/engine/page_reader.hpp"
#include "15_serving/server/http_server.hpp"
#include "15_serving/server/service.hpp"
#include "served_tiny.hpp"
#include "support/lists.hpp"
#include "support/refuses.hpp"

namespace t2t::server_test {

using namespace std::chrono_literals;
using nlohmann::json;
using std::size_t;

static const Session& session() {
  static const Session one = tiny_session();
  return one;
}
static const PageSizes sizes{.pages = 60, .page = 8, .texts = 4, .budget = 32};
static PageReader reader() { return model_reader(session().model, sizes); }
/// The same with steps of at least 5 ms, for what must happen before an answer has ended.
static PageReader slow_reader() {
  PageReader slow = reader();
  slow.read = [read = slow.read](std::span<const Piece> pieces, Matrix logits) {
    std::this_thread::sleep_for(5ms);
    read(pieces, logits);
  };
  return slow;
}

static Request request(int first, size_t most) {
  Request asked{.prompt = Ids(20, first), .most = most, .sampling = {.temperature = 0.9f}};
  asked.seed = std::uint64_t(first);
  return asked;
}

/// The ids of the only answer, which must come to its end.
static Ids ids_of(Answers& answers) {
  Ids ids;
  bool ended = false;
  while (!ended) {
    const std::optional<Said> said = answers.next(3s);
    if (!said) break;
    if (said->event.token) ids.push_back(*said->event.token);
    ended = said->event.ending.has_value();
  }
  CHECK(ended);
  return ids;
}

/// Waits, a while at most, until nothing runs any more.
static ServiceCounts at_rest(const Service& service) {
  ServiceCounts counts;
  for (int i = 0; i < 300; ++i) {
    counts = service.counts();
    if (counts.unfinished == 0 && counts.texts == counts.ended + counts.cancelled + counts.failed)
      return counts;
    std::this_thread::sleep_for(10ms);
  }
  CHECK(counts.unfinished == 0);
  CHECK(counts.texts == counts.ended + counts.cancelled + counts.failed);
  return counts;
}

TEST_CASE("many threads ask at the same time, and each gets the answer that it would get alone") {
  std::vector<Ids> alone;
  {
    Service service(reader(), 1);
    for (int i = 0; i < 12; ++i) alone.push_back(ids_of(*service.ask({request(i, 15)})));
  }
  Service service(reader(), 20);
  std::vector<Ids> together(12);
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&, i] { together[size_t(i)] = ids_of(*service.ask({request(i, 15)})); });
  for (std::thread& thread : threads) thread.join();
  CHECK(together == alone);
  const ServiceCounts counts = at_rest(service);
  CHECK(counts.texts == 12);
  CHECK(counts.ended == 12);
  CHECK(counts.tokens_said == 12 * 15);
  CHECK(counts.pages_free + counts.pages_kept == 60);
}

TEST_CASE("a service refuses what the engine refuses, all or nothing, and more than it may hold") {
  Service service(slow_reader(), 2);
  REFUSES(service.ask({request(1, 5), {.prompt = {999}}}),
          "an id of the prompt: wanted 0 to 257, got 999");
  CHECK(at_rest(service).texts == 0);
  // If the first of the two went on, it would have ended by now.
  CHECK(ids_of(*service.ask({request(1, 20)})).size() == 20);
  CHECK(at_rest(service).ended == 1);
  std::vector<Request> six(6, request(1, 200));
  const auto answers = service.ask(six);
  REFUSES_AS(service.ask({request(1, 1)}), "6 texts are being answered or wait already", TooBusy);
  CHECK(service.counts().refused == 1);
  service.cancel(answers);
  CHECK(at_rest(service).cancelled == 6);
  CHECK(ids_of(*service.ask({request(1, 3)})).size() == 3);
}

TEST_CASE("what has been cancelled gives its pages back, and one answer of several can be") {
  Service service(slow_reader(), 8);
  const auto answers = service.ask({request(1, 100), request(2, 20)});
  while (answers->next(3s)->answer != 0) {
  }
  service.cancel(answers, 0);
  size_t of_second = 0;
  for (std::optional<Said> said; (said = answers->next(3s));) {
    of_second += said->answer == 1 && said->event.token;
    if (said->event.ending) break;
  }
  CHECK(of_second > 0);
  const ServiceCounts counts = at_rest(service);
  CHECK(counts.cancelled == 1);
  CHECK(counts.ended == 1);
  CHECK(counts.pages_free + counts.pages_kept == 60);
}

TEST_CASE("a reader that throws fails all texts with its reason, and the service goes on") {
  PageReader failing = reader();
  int calls = 0;
  failing.read = [read = failing.read, &calls](std::span<const Piece> pieces, Matrix logits) {
    if (++calls == 3) throw std::runtime_error("no memory");
    read(pieces, logits);
  };
  Service service(failing, 8);
  const auto answers = service.ask({request(1, 9), request(3, 9)});
  std::vector<std::string> errors(2);
  while (errors[0].empty() || errors[1].empty()) {
    const std::optional<Said> said = answers->next(3s);
    if (!said || said->event.ending) break;
    errors[said->answer] = said->event.error;
  }
  CHECK(errors == std::vector<std::string>{"no memory", "no memory"});
  CHECK(ids_of(*service.ask({request(2, 4)})).size() == 4);
  CHECK(at_rest(service).failed == 2);
}

TEST_CASE("closing lets answers end within the grace, and ends the others with a reason") {
  Service patient(reader(), 8);
  const auto ends = patient.ask({request(1, 5)});
  patient.close(60s);
  CHECK(ids_of(*ends).size() == 5);
  REFUSES_AS(patient.ask({request(1, 5)}), "the server is ending, and takes no more requests",
             Closed);
  Service hasty(slow_reader(), 8);
  const auto cut = hasty.ask({request(1, 150)});
  hasty.close(0s);
  std::string error;
  for (std::optional<Said> said; error.empty() && (said = cut->next(1s));)
    error = said->event.error;
  CHECK(error == "the server has ended");
}

namespace {
/// A server of the tiny model on some port, with its threads.
struct Running {
  Service service;
  ServedModel model = served_model(session());
  HttpServer server;

  explicit Running(const std::string& key = "", PageReader by = reader())
      : service(std::move(by), 8),
        server(service, model, {.port = 0, .key = key, .threads = 12, .log = false}) {}
  ~Running() { service.close(0s); }
  httplib::Client client() const {
    httplib::Client made("127.0.0.1", server.port());
    made.set_read_timeout(5);
    return made;
  }
};
httplib::Result post(const Running& running, const std::string& path, const std::string& body) {
  return running.client().Post(path, body, "application/json");
}
const std::string chat = "/v1/chat/completions";
std::string hello(const std::string& more) {
  return R"({"messages": [{"role": "user", "content": "Hi"}], "seed": 1, "max_tokens": 12)" + more +
         "}";
}
}  // namespace

TEST_CASE("by HTTP: an answer, the same in a stream, and cut before a stop string") {
  Running running("", slow_reader());
  const auto whole = post(running, chat, hello(""));
  REQUIRE(whole);
  CHECK(whole->status == 200);
  const json answer = json::parse(whole->body);
  const std::string text = answer["choices"][0]["message"]["content"];
  CHECK(answer["usage"]["completion_tokens"] == 12);
  CHECK(answer["choices"][0]["finish_reason"] == "length");

  const auto stream = post(running, chat, hello(R"(, "stream": true)"));
  REQUIRE(stream);
  CHECK(stream->get_header_value("Content-Type") == "text/event-stream");
  std::string streamed, reason;
  for (size_t at = 0, end; (end = stream->body.find("\n\n", at)) != std::string::npos;
       at = end + 2) {
    const std::string event = stream->body.substr(at + 6, end - at - 6);
    if (event == "[DONE]") break;
    const json choice = json::parse(event)["choices"][0];
    streamed += choice["delta"].value("content", "");
    if (!choice["finish_reason"].is_null()) reason = choice["finish_reason"];
  }
  CHECK(streamed == text);
  CHECK(reason == "length");
  CHECK(stream->body.ends_with("data: [DONE]\n\n"));

  // A stop string of two characters, and so of two tokens or more: each token is a byte here.
  size_t first = text.size() / 2, last = first;
  const auto is_inside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; };
  while (is_inside(first)) ++first;
  for (last = first + 2; is_inside(last); ++last) {
  }
  const std::string stop = text.substr(first, last - first);
  const auto stopped =
      post(running, chat, hello(R"(, "max_completion_tokens": 150, "stop": )" + json(stop).dump()));
  REQUIRE(stopped);
  const json cut = json::parse(stopped->body)["choices"][0];
  CHECK(cut["message"]["content"] == text.substr(0, text.find(stop)));
  CHECK(cut["finish_reason"] == "stop");
  CHECK(at_rest(running.service).cancelled == 1);  // the engine was told
}

TEST_CASE("by HTTP: several answers differ by their seeds, and a prompt goes on") {
  Running running;
  const auto three = post(running, chat, hello(R"(, "n": 3)"));
  REQUIRE(three);
  const json choices = json::parse(three->body)["choices"];
  REQUIRE(choices.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto one = post(running, chat, hello(R"(, "seed": )" + std::to_string(1 + i)));
    REQUIRE(one);
    CHECK(json::parse(one->body)["choices"][0]["message"] == choices[i]["message"]);
  }
  const auto more =
      post(running, "/v1/completions", R"({"prompt": "ab", "max_tokens": 3, "temperature": 0})");
  REQUIRE(more);
  CHECK(json::parse(more->body)["usage"]["prompt_tokens"] == 2);
}

/// The log-probabilities of a text's tokens from the second one on, by a pass over all of it.
static std::vector<double> log_p_of(const Ids& ids) {
  const size_t T = ids.size(), V = session().config().V;
  ModelState state(session().config(), T);
  Tensor<2> logits = empty(T, V);
  forward_all(session().model, state, ids, logits);
  std::vector<double> log_p;
  for (size_t t = 1; t < T; ++t) {
    double sum = 0;
    for (size_t v = 0; v < V; ++v) sum += std::exp(double(logits(t - 1, v)));
    log_p.push_back(double(logits(t - 1, size_t(ids[t]))) - std::log(sum));
  }
  return log_p;
}

TEST_CASE("by HTTP: a text that is only to be scored, and again when its pages are known") {
  Running running;
  const std::string text = "To be, or not to be: that is the question.";
  const std::vector<double> want = log_p_of(Ids(text.begin(), text.end()));
  for (const char* more : {"", "", R"(, "stream": true)"}) {
    CAPTURE(more);
    const auto got = post(running, "/v1/completions",
                          R"({"max_tokens": 0, "echo": true, "logprobs": 0, "prompt": )" +
                              json(text).dump() + more + "}");
    REQUIRE(got);
    REQUIRE(got->status == 200);
    const bool is_stream = got->body.starts_with("data: ");
    const json choice = json::parse(is_stream ? got->body.substr(6, got->body.find('\n') - 6)
                                              : got->body)["choices"][0];
    CHECK(choice["text"] == text);
    const json scores = choice["logprobs"]["token_logprobs"];
    REQUIRE(scores.size() == text.size());
    CHECK(scores[0].is_null());
    // As in "the logits are those of the formula", and twice as much for a log-probability.
    for (size_t t = 1; t < text.size(); ++t)
      CHECK(std::abs(scores[t].get<double>() - want[t - 1]) < 0x1p-24 * 8 * 20 * 10 * 2);
    if (is_stream) continue;
    CHECK(choice["finish_reason"] == "length");
    CHECK(json::parse(got->body)["usage"]["completion_tokens"] == 0);
  }
}

TEST_CASE("by HTTP: several prompts get the answers that each gets by itself") {
  Running running;
  const auto choices = [&](const std::string& prompt) {
    const auto got = post(running, "/v1/completions",
                          R"({"n": 2, "seed": 3, "max_tokens": 5, "prompt": )" + prompt + "}");
    REQUIRE(got);
    REQUIRE(got->status == 200);
    return json::parse(got->body);
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
  Running running("", slow_reader());
  const auto refused = [&](const httplib::Result& got, int status, const std::string& message,
                           const json& param = nullptr, const json& code = nullptr) {
    CAPTURE(message);
    REQUIRE(got);
    CHECK(got->status == status);
    const json body = json::parse(got->body, nullptr, false);
    REQUIRE(body.is_object());
    CHECK(body["error"]["param"] == param);
    CHECK(body["error"]["code"] == code);
    CHECK(body["error"]["message"] == message);
  };
  refused(post(running, chat, hello(R"(, "n": 0)")), 400,
          "n: wanted a whole number from 1 to 8, got 0", "n");
  refused(post(running, chat, R"({"messages": [{"role": "tool"}]})"), 400,
          "messages[0].role: wanted system, user or assistant, got \"tool\"", "messages[0].role");
  refused(post(running, chat, hello(R"(, "response_format": {"type": "json_schema",
              "json_schema": {"schema": {"pattern": "a"}}})")),
          400,
          "response_format: schema /pattern: wanted one of type, properties, required, items, "
          "minItems, additionalProperties, maxItems, minLength, maxLength, enum, const, anyOf, "
          "$ref, got "
          "pattern",
          "response_format");
  refused(post(running, chat, hello(R"(, "model": "gpt")")), 404,
          "model: wanted \"tiny\", got \"gpt\"", "model", "model_not_found");
  refused(running.client().Get("/v1/models/gpt"), 404, "model: wanted \"tiny\", got \"gpt\"",
          "model", "model_not_found");
  refused(running.client().Get("/v1/models/" + std::string(8000, 'a')), 404,
          "model: wanted \"tiny\", got \"" + std::string(40, 'a') + "…\"", "model",
          "model_not_found");
  refused(post(running, chat,
               R"({"messages": [{"role": "user", "content": ")" + std::string(500, 'x') + "\"}]}"),
          400, "tokens of the prompt: wanted below the 256 that a text can have, got 542");
  refused(post(running, chat, std::string((1 << 20) + 1, ' ')), 413,
          "POST /v1/chat/completions: wanted a body of at most 1 MiB");
  refused(post(running, "/v1/audio", "{}"), 404, "POST /v1/audio: this server has no such path");
  refused(running.client().Post(chat, hello(""), "text/plain"), 415,
          "Content-Type: wanted application/json");
  std::vector<Request> all(12, request(3, 200));
  const auto busy = running.service.ask(all);
  const auto more = post(running, chat, hello(""));
  refused(more, 429, "12 texts are being answered or wait already", nullptr, "rate_limit_exceeded");
  CHECK(more->get_header_value("Retry-After") == "1");
  running.service.cancel(busy);
  at_rest(running.service);
  CHECK(running.client().Get("/health")->status == 200);
  running.service.close(0s);
  refused(post(running, chat, hello("")), 503, "the server is ending, and takes no more requests");
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
    return running.client().Post("/v1/completions", body, type)->status;
  };
  CHECK(status("Application/JSON; charset=utf-8") == 200);
  CHECK(status("application/jsonx") == 415);
}

TEST_CASE("by HTTP: a key, the model's name, counts, and the page") {
  Running running("secret");
  httplib::Client client = running.client();
  CHECK(client.Get("/v1/models")->status == 401);
  CHECK(client.Get("/v1/models", {{"Authorization", "Bearer secre"}})->status == 401);
  CHECK(client.Get("/v1/models", {{"Authorization", "Bearer secrets"}})->status == 401);
  CHECK(client.Get("/v1/models", {{"Authorization", "Basic secret"}})->status == 401);
  CHECK(json::parse(client.Get("/v1/models")->body)["error"]["code"] == "invalid_api_key");
  const auto models = client.Get("/v1/models", {{"Authorization", "Bearer secret"}});
  CHECK(json::parse(models->body)["data"][0]["id"] == "tiny");
  const auto one = client.Get("/v1/models/tiny", {{"Authorization", "bearer secret"}});
  CHECK(json::parse(one->body) == json::parse(models->body)["data"][0]);
  CHECK(client.Get("/metrics", {{"Authorization", "Bearer secret"}})->body.find("t2t_pages 60\n") !=
        std::string::npos);
  const auto page = client.Get("/");
  CHECK(page->status == 200);
  CHECK(page->body.find("<title>Chat</title>") != std::string::npos);
  CHECK(page->body.find("http") == std::string::npos);  // it asks nobody else
}

TEST_CASE("a client that goes away in the middle of its answer frees the pages") {
  Running running("", slow_reader());
  httplib::Client client = running.client();
  httplib::Request asked;
  asked.method = "POST", asked.path = chat;
  asked.set_header("Content-Type", "application/json");
  asked.body = hello(R"(, "stream": true, "max_completion_tokens": 180)");
  size_t heard = 0;
  asked.content_receiver = [&](const char*, size_t n, auto, auto) { return (heard += n) < 400; };
  client.send(asked);
  const ServiceCounts counts = at_rest(running.service);
  CHECK(counts.cancelled == 1);
  CHECK(counts.pages_free + counts.pages_kept == 60);
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

}  // namespace t2t::server_test
