// The HTTP server. It offers those of OpenAI's paths that make sense for one model, so that clients
// of that service also work here:
//
//   POST /v1/chat/completions   continues a conversation by an answer
//   POST /v1/completions        continues a text
//   GET  /v1/models             the model's name; also as /v1/models/NAME
//   GET  /health                "ok" while requests are accepted
//   GET  /metrics               counts, for Prometheus
//   GET  /                      a page to chat with, for a browser
//
// One thread reads and writes for all connections, whichever is ready, and a few others read the
// bodies of requests and hand them to the service. A waiting connection therefore costs no thread.
// When a client disconnects before the end, its answers are cancelled and their pages are free at
// once.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "16_server/api/served_model.hpp"
#include "16_server/server/service.hpp"

namespace t2t {

/// Limits on one connection's cost. Beyond them it is closed.
struct ConnectionLimits {
  std::size_t head_bytes = 16384, body_bytes = 1 << 20;  // of a request
  std::chrono::milliseconds head{10000}, body{30000};    // for all of it to arrive
  std::chrono::milliseconds write{10000};                // for a part of a reply to be sent
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;          // 0: any that is free
  std::string key = {};     // that clients must send as "Authorization: Bearer KEY"; empty: none
  std::string origin = {};  // of other pages that may use the server; empty: none
  std::size_t connections = 100;  // at the same time; then those without a request give way
  ConnectionLimits limits = {};
  bool log = true;  // a line on stderr for each request, without its text
};

class HttpServer {
 public:
  /// Opens the port and answers requests from now on, in its own threads. The service and the model
  /// must outlive it. Throws std::runtime_error, with host and port, when the port can't be opened,
  /// and when the page can't be read; std::invalid_argument as Guard does.
  HttpServer(Service& service, const ServedModel& served, HttpOptions options);
  /// Accepts no more requests, and waits until the earlier ones are answered, which Service::close
  /// ensures.
  ~HttpServer();

  int port() const;

 private:
  struct Impl;  // includes Boost, which only http_server.cpp and connection.cpp do
  std::unique_ptr<Impl> impl_;
};

}  // namespace t2t
