// The server's door: HTTP requests in, answers out. It has those of OpenAI's paths that make sense
// for one model, so that clients written for that service work here too:
//
//   POST /v1/chat/completions   a conversation goes on by an answer
//   POST /v1/completions        a text goes on
//   GET  /v1/models             the model's name; also as /v1/models/NAME
//   GET  /health                "ok" while requests are taken
//   GET  /metrics               counts, for Prometheus
//   GET  /                      a page to chat with, for a browser
//
// Every connection has a thread, which waits for its answers and writes them. If a client goes away
// in the middle, its answers are cancelled, and their pages are free at once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "15_serving/api/served_model.hpp"
#include "15_serving/server/service.hpp"

namespace t2t {

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8080;            // 0: any that is free
  std::string key;            // that clients must send as "Authorization: Bearer KEY"; empty: none
  std::size_t threads = 100;  // connections at the same time
  bool log = true;            // a line on stderr for each request, without its text
};

class HttpServer {
 public:
  /// Takes the port and answers requests from now on, with threads of its own. The service and the
  /// model must outlive it. Throws std::runtime_error, with host and port, when the port can't be
  /// taken, and when the page can't be read.
  HttpServer(Service& service, const ServedModel& served, HttpOptions options);
  /// Takes no more requests, and waits until those that have come are answered: Service::close sees
  /// to it that they are.
  ~HttpServer();

  int port() const;

 private:
  struct Routes;  // includes httplib, which only http_server.cpp does
  std::unique_ptr<Routes> routes_;
};

}  // namespace t2t
