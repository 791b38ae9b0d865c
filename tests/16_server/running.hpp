// A server of the tiny model on some port, and the ways in which tests talk to it.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "15_serving/engine/model_runner.hpp"
#include "16_server/server/http_client.hpp"
#include "16_server/server/http_server.hpp"
#include "16_server/server/service.hpp"
#include "served_tiny.hpp"

namespace t2t {

inline const Session& tiny_served() {
  static const Session one = tiny_session();
  return one;
}
inline constexpr EngineOptions tiny_options{
    .pages = 60, .page_size = 8, .sequences = 4, .budget = 32};
inline ModelRunner tiny_runner() { return model_runner(tiny_served().model, tiny_options); }
/// The same with steps of at least 5 ms, for what must happen before an answer has ended.
inline ModelRunner slow(ModelRunner runner) {
  runner.run = [run = runner.run](std::span<const Chunk> chunks, Matrix logits) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    run(chunks, logits);
  };
  return runner;
}
inline ModelRunner slow_runner() { return slow(tiny_runner()); }

/// Waits, a while at most, until nothing runs any more.
inline ServiceCounts at_rest(const Service& service) {
  ServiceCounts counts;
  for (int i = 0; i < 300; ++i) {
    counts = service.counts();
    if (counts.unfinished == 0 &&
        counts.sequences == counts.ended + counts.cancelled + counts.failed)
      return counts;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  CHECK(counts.unfinished == 0);
  CHECK(counts.sequences == counts.ended + counts.cancelled + counts.failed);
  return counts;
}

inline const std::string chat = "/v1/chat/completions";
inline const HttpHeaders as_json = {{"Content-Type", "application/json"}};

/// A question, and more fields after it.
inline std::string hello(const std::string& more) {
  return R"({"messages": [{"role": "user", "content": "Hi"}], "seed": 1, "max_tokens": 12)" + more +
         "}";
}

/// A server with its threads, in which 4 texts are answered and 8 more may wait.
struct Running {
  Service service;
  ServedModel model = served_model(tiny_served());
  HttpServer server;

  explicit Running(HttpOptions options = {}, ModelRunner by = tiny_runner())
      : service(std::move(by), 8), server(service, model, quiet(std::move(options))) {}
  ~Running() { service.close(std::chrono::seconds(0)); }

  static HttpOptions quiet(HttpOptions options) {
    options.port = 0, options.log = false;
    return options;
  }
  HttpClient client() const {
    return HttpClient("http://127.0.0.1:" + std::to_string(server.port()),
                      std::chrono::seconds(120));
  }
  HttpResult post(const std::string& path, const std::string& body) const {
    return client().send("POST", path, body, as_json);
  }
  HttpResult get(const std::string& path, const HttpHeaders& headers = {}) const {
    return client().send("GET", path, {}, headers);
  }
};

/// A plain connection, for bytes that no client would send.
class RawConnection {
 public:
  explicit RawConnection(const Running& running);
  ~RawConnection();
  RawConnection(RawConnection&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

  /// False if the other end takes no more.
  bool send(std::string_view bytes) const;
  /// All that comes until the other end closes, or for so long. `closed` says which.
  std::string receive(std::chrono::milliseconds most, bool* closed = nullptr) const;

 private:
  int file_;
};

}  // namespace t2t
