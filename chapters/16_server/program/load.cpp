#include "16_server/program/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "16_server/server/http_client.hpp"
#include "random.hpp"
#include "timing/measure.hpp"
#include "utf8_start.hpp"

namespace t2t {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double rank = std::ceil(p * double(values.size()));
  return values[std::size_t(std::clamp(rank, 1.0, double(values.size()))) - 1];
}

struct Planned {
  double at;  // seconds after the beginning
  std::string body;
};

/// A prompt of this many words, with a beginning of its own.
static std::string some_words(std::size_t words, std::size_t number) {
  static constexpr std::string_view known[] = {
      "river", "stone", "a",     "the",    "green", "light",  "walks", "and",
      "then",  "under", "seven", "houses", "of",    "winter", "song",  "tall"};
  std::string text = fmt::format("Story {}:", number);
  for (std::size_t i = 0; i < words; ++i) {
    text += ' ';
    text += known[(number * 7 + i * i + i / 3) % std::size(known)];
  }
  return text + " Tell me how it goes on.";
}

static std::vector<Planned> plan(const Load& load) {
  Random random(load.seed);
  const auto exponential = [&](double mean) { return -mean * std::log1p(-random.next_uniform()); };
  const auto length = [&](std::size_t mean) {
    return std::size_t(std::clamp(exponential(double(mean)), 1.0, 4.0 * double(mean)));
  };
  std::vector<Planned> planned;
  double at = 0;
  for (std::size_t i = 0; i < load.requests; ++i) {
    const json body = {
        {"messages", {{{"role", "user"}, {"content", some_words(length(load.prompt), i)}}}},
        {"max_tokens", length(load.tokens)},
        {"temperature", 0.8},
        {"seed", i},
        {"stream", true},
        {"stream_options", {{"include_usage", true}}}};
    planned.push_back({at, body.dump()});
    at += exponential(1 / load.rate);
  }
  return planned;
}

/// Reads a stream's events as they come.
class StreamReader {
 public:
  StreamReader(Clock::time_point due, RequestResult& result) : due_(due), result_(result) {}

  void push(std::string_view bytes) {
    held_ += bytes;
    for (std::size_t end; (end = held_.find("\n\n")) != std::string::npos;) {
      read_event(std::string_view(held_).substr(0, end));
      held_.erase(0, end + 2);
    }
  }

 private:
  void read_event(std::string_view event) {
    if (!event.starts_with("data: ")) return;
    event.remove_prefix(6);
    if (event == "[DONE]") {
      result_.answered = result_.error.empty();
      return;
    }
    const json got = json::parse(event, nullptr, false);
    if (got.contains("error")) result_.error = got["error"].value("message", "an error");
    if (got.contains("usage") && got["usage"].is_object()) {
      result_.tokens = got["usage"].value("completion_tokens", 0);
      result_.prompt_tokens = got["usage"].value("prompt_tokens", 0);
    }
    if (!got.contains("choices") || got["choices"].empty()) return;
    const json& delta = got["choices"][0]["delta"];
    if (!delta.contains("content") || delta["content"].is_null() || delta["content"] == "") return;
    const double now = seconds_since(due_);
    if (result_.first == 0)
      result_.first = now;
    else
      result_.between.push_back(now - last_);
    last_ = now;
  }

  Clock::time_point due_;
  RequestResult& result_;
  std::string held_;
  double last_ = 0;
};

static RequestResult send(const Load& load, const std::string& body, Clock::time_point due) {
  RequestResult result;
  StreamReader reader(due, result);
  std::string refusal;
  const auto take = [&](std::string_view part) {
    reader.push(part);
    if (refusal.size() < 400) refusal += part;
    return true;
  };
  try {
    const HttpResult reply = HttpClient(load.url).send(
        "POST", "/v1/chat/completions", body, {{"Content-Type", "application/json"}}, take);
    if (reply.status != 200)
      result.error = fmt::format("{} {}", reply.status, refusal);
    else if (!result.answered && result.error.empty())
      result.error = "the stream ended without an end";
  } catch (const std::runtime_error& error) {
    if (result.error.empty()) result.error = error.what();
  }
  result.end = seconds_since(due);
  return result;
}

LoadResult run_load(const Load& load) {
  try {
    HttpClient(load.url).send("GET", "/health");
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(
        fmt::format("{}: no server answers there ({})", printable(load.url), error.what()));
  }
  const std::vector<Planned> planned = plan(load);
  LoadResult result;
  result.requests.resize(planned.size());
  const Clock::time_point start = Clock::now();
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto due = start + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(planned[i].at));
    std::this_thread::sleep_until(due);
    clients.emplace_back([&, i, due] { result.requests[i] = send(load, planned[i].body, due); });
  }
  for (std::thread& client : clients) client.join();
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace t2t
