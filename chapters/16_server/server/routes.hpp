// The server's paths, and their replies.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "16_server/api/served_model.hpp"
#include "16_server/server/exchange.hpp"
#include "16_server/server/http_message.hpp"
#include "16_server/server/service.hpp"

namespace t2t {

class Routes {
 public:
  /// The service and the model must outlive it. Throws std::runtime_error when the page can't be
  /// read.
  Routes(Service& service, const ServedModel& served);

  /// Whether this request asks for the model's answers. If so, `ask` answers it, otherwise `reply`.
  static bool asks(const HttpRequest& request);
  /// Answers at once.
  HttpReply reply(const HttpRequest& request) const;
  /// Reads the body and hands it to the service, which can take as long as a step. A faulty request
  /// gets 400 or RequestError's status, too many sequences 429, missing memory or a service that is
  /// ending 503, and any other fault of the server 500. `on_change` is as in Service::ask.
  std::variant<HttpReply, std::unique_ptr<Exchange>> ask(const HttpRequest& request,
                                                         std::function<void()> on_change);

 private:
  Service& service_;
  const ServedModel& served_;
  std::string page_;
  std::atomic<std::uint64_t> exchanges_ = 0;
};

}  // namespace t2t
