#include "16_server/server/routes.hpp"

#include <fmt/format.h>

#include <ctime>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "16_server/api/api_request.hpp"
#include "16_server/api/fields.hpp"
#include "16_server/api/metrics.hpp"
#include "16_server/api/reply.hpp"
#include "files/files.hpp"
#include "utf8_start.hpp"

namespace t2t {

static constexpr const char* chat_path = "/v1/chat/completions";
static constexpr const char* text_path = "/v1/completions";
static constexpr std::string_view models_path = "/v1/models/";  // a model's name follows

static HttpReply refusal_for(const RequestError& error) {
  return {error.status, error_json(error.status, error.what(), error.field, error.code)};
}

Routes::Routes(Service& service, const ServedModel& served)
    : service_(service), served_(served), page_(read_file(T2T_CHAT_PAGE)) {}

bool Routes::asks(const HttpRequest& request) {
  return request.method == "POST" && (request.path == chat_path || request.path == text_path);
}

HttpReply Routes::reply(const HttpRequest& request) const {
  if (request.method == "OPTIONS") return {204};
  const bool get = request.method == "GET" || request.method == "HEAD";
  if (get && request.path == "/")
    return {200,
            page_,
            "text/html; charset=utf-8",
            {{"Content-Security-Policy",
              "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
              "connect-src 'self'"}}};
  if (get && request.path == "/health") {
    if (service_.closed()) return {503, "{\"status\":\"ending\"}"};
    return {200, "{\"status\":\"ok\"}"};
  }
  if (get && request.path == "/metrics")
    return {200, metrics_text(service_.counts()), "text/plain; version=0.0.4"};
  if (get && request.path == "/v1/models") return {200, models_json(served_)};
  if (get && request.path.starts_with(models_path)) {
    const std::string name = request.path.substr(models_path.size());
    if (name == served_.name) return {200, model_json(served_)};
    return refusal_for(no_model(name, served_));
  }
  return refusal(404, fmt::format("{} {}: this server has no such path", printable(request.method),
                                  printable(request.path, 200)));
}

std::variant<HttpReply, std::unique_ptr<Exchange>> Routes::ask(const HttpRequest& request,
                                                               std::function<void()> on_change) {
  const Endpoint endpoint =
      request.path == chat_path ? Endpoint::chat_completions : Endpoint::completions;
  try {
    return std::make_unique<Exchange>(read_api_request(endpoint, request.body, served_), service_,
                                      served_, exchanges_++, std::time(nullptr),
                                      std::move(on_change));
  } catch (const RequestError& error) {
    return refusal_for(error);
  } catch (const std::invalid_argument& error) {
    return refusal(400, error.what());
  } catch (const TooBusy& error) {
    HttpReply reply = refusal(429, error.what());
    reply.headers = {{"Retry-After", "1"}};
    return reply;
  } catch (const Closed& error) {
    return refusal(503, error.what());
  } catch (const std::bad_alloc&) {
    return refusal(503, no_memory);
  } catch (const std::exception& error) {
    return refusal(500, error.what());
  } catch (...) {
    return refusal(500, "an unknown error");
  }
}

}  // namespace t2t
