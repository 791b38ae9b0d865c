#include "15_serving/server/http_server.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "15_serving/api/ask.hpp"
#include "15_serving/api/headers.hpp"
#include "15_serving/api/metrics.hpp"
#include "15_serving/api/reply.hpp"
#include "15_serving/server/exchange.hpp"
#include "files/files.hpp"
#include "utf8_start.hpp"

namespace t2t {

static constexpr std::size_t most_body = 1 << 20;
static constexpr const char* json_type = "application/json";
static constexpr std::string_view models_path = "/v1/models/";  // a model's name follows

/// A line on stderr; where it can't be written, as on a full disk, the server goes on without it.
static void log_line(const std::string& line) {
  const std::string whole =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}\n", fmt::gmtime(std::time(nullptr)), line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

struct HttpServer::Routes {
  Service& service;
  const ServedModel& served;
  HttpOptions options;
  std::string page;
  httplib::Server server;
  std::atomic<std::uint64_t> exchanges = 0;
  int port = 0;
  std::atomic<bool> ended = false;
  std::thread thread;

  Routes(Service& by, const ServedModel& model, HttpOptions how)
      : service(by), served(model), options(std::move(how)), page(read_file(T2T_CHAT_PAGE)) {
    set_limits();
    set_checks();
    set_routes();
    bind();
  }

  static void refuse(httplib::Response& res, int status, const std::string& why) {
    res.status = status;
    res.set_content(error_json(status, why), json_type);
  }
  static void refuse(httplib::Response& res, const RequestError& error) {
    res.status = error.status;
    res.set_content(error_json(error.status, error.what(), error.field, error.code), json_type);
  }

  void set_limits() {
    server.new_task_queue = [this] { return new httplib::ThreadPool(options.threads); };
    server.set_payload_max_length(most_body);
    server.set_read_timeout(5), server.set_write_timeout(10);
    server.set_keep_alive_timeout(2), server.set_keep_alive_max_count(1000);
    server.set_tcp_nodelay(true);
    // httplib's own options would let two servers share a port, each with some of the connections.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
  }

  /// A browser sends a page of another origin's JSON only after it has asked, which is refused.
  /// Other types it sends unasked, so they are refused here.
  void set_checks() {
    server.set_pre_routing_handler([this](const httplib::Request& req, httplib::Response& res) {
      const bool open = req.path == "/" || req.path == "/health";
      if (!options.key.empty() && !open && !has_key(req.get_header_value("Authorization")))
        refuse(res, 401, "the key: wanted the one of this server, as \"Authorization: Bearer …\"");
      else if (req.method == "POST" && !is_json_type(req.get_header_value("Content-Type")))
        refuse(res, 415, "Content-Type: wanted application/json");
      else if (req.method == "GET" && req.path.starts_with(models_path))
        show_model(req.path.substr(models_path.size()), res);
      else
        return httplib::Server::HandlerResponse::Unhandled;
      return httplib::Server::HandlerResponse::Handled;
    });
    server.set_error_handler([](const httplib::Request& req, httplib::Response& res) {
      if (!res.body.empty()) return;
      const std::string what = printable(req.method + " " + req.path);
      const char* why = res.status == 404   ? "this server has no such path"
                        : res.status == 413 ? "wanted a body of at most 1 MiB"
                                            : "not a request that this server understands";
      refuse(res, res.status, fmt::format("{}: {}", what, why));
    });
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& res, const std::exception_ptr& error) {
          try {
            std::rethrow_exception(error);
          } catch (const std::exception& known) {
            refuse(res, 500, known.what());
          } catch (...) {
            refuse(res, 500, "an unknown error");
          }
        });
    server.set_logger([this](const httplib::Request& req, const httplib::Response& res) {
      if (options.log)
        log_line(fmt::format("{} {} {} {}", req.remote_addr, printable(req.method),
                             printable(req.path), res.status));
    });
  }

  /// Compares all of the key whatever the first difference is: how long it takes must tell nothing.
  bool has_key(const std::string& authorization) const {
    const std::string_view given = bearer_key(authorization).value_or("");
    unsigned different = given.size() != options.key.size();
    for (std::size_t i = 0; i < std::min(given.size(), options.key.size()); ++i)
      different |= unsigned(given[i] ^ options.key[i]);
    return different == 0;
  }

  /// By a path and not by a pattern: std::regex on a long path takes much of the stack.
  void show_model(const std::string& name, httplib::Response& res) const {
    if (name == served.name)
      res.set_content(model_json(served), json_type);
    else
      refuse(res, no_model(name, served));
  }

  void set_routes() {
    server.Get("/", [this](const httplib::Request&, httplib::Response& res) {
      res.set_header("Content-Security-Policy",
                     "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                     "connect-src 'self'");
      res.set_content(page, "text/html; charset=utf-8");
    });
    server.Get("/health", [](const httplib::Request&, httplib::Response& res) {
      res.set_content("{\"status\":\"ok\"}", json_type);
    });
    server.Get("/metrics", [this](const httplib::Request&, httplib::Response& res) {
      res.set_content(metrics_text(service.counts()), "text/plain; version=0.0.4");
    });
    server.Get("/v1/models", [this](const httplib::Request&, httplib::Response& res) {
      res.set_content(models_json(served), json_type);
    });
    server.Post("/v1/chat/completions",
                [this](const httplib::Request& req, httplib::Response& res) {
                  answer(Endpoint::chat_completions, req, res);
                });
    server.Post("/v1/completions", [this](const httplib::Request& req, httplib::Response& res) {
      answer(Endpoint::completions, req, res);
    });
  }

  /// False when the connection is to be closed.
  static bool go_on(Exchange& exchange, httplib::DataSink& sink) {
    const Client client{[&](std::string_view text) { return sink.write(text.data(), text.size()); },
                        [&] { return sink.is_writable(); }};
    const Exchange::State state = exchange.go_on(client);
    if (state == Exchange::State::done) sink.done();
    return state != Exchange::State::broken;
  }

  void answer(Endpoint endpoint, const httplib::Request& req, httplib::Response& res) {
    try {
      const auto exchange = std::make_shared<Exchange>(
          read_ask(endpoint, req.body, served), service, served, exchanges++, std::time(nullptr));
      res.set_header("Cache-Control", "no-cache");
      res.set_chunked_content_provider(
          exchange->is_stream() ? "text/event-stream" : json_type,
          [exchange](std::size_t, httplib::DataSink& sink) { return go_on(*exchange, sink); },
          [this, exchange](bool) {
            if (options.log) log_line("  " + exchange->summary());
          });
    } catch (const RequestError& error) {
      refuse(res, error);
    } catch (const std::invalid_argument& error) {
      refuse(res, 400, error.what());
    } catch (const TooBusy& error) {
      res.set_header("Retry-After", "1");
      refuse(res, 429, error.what());
    } catch (const Closed& error) {
      refuse(res, 503, error.what());
    }
  }

  /// Returns once connections are taken: before, httplib's stop would do nothing.
  void listen() {
    thread = std::thread([this] {
      server.listen_after_bind();
      ended = true;
    });
    while (!server.is_running() && !ended)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  void bind() {
    errno = 0;
    port = options.port;
    const bool done = options.port == 0 ? (port = server.bind_to_any_port(options.host)) > 0
                                        : server.bind_to_port(options.host, options.port);
    if (!done)
      throw std::runtime_error(fmt::format(
          "{}:{}: no server can be started there ({}); --port names another port",
          printable(options.host), options.port, std::generic_category().message(errno)));
  }
};

HttpServer::HttpServer(Service& service, const ServedModel& served, HttpOptions options)
    : routes_(std::make_unique<Routes>(service, served, std::move(options))) {
  routes_->listen();
}
HttpServer::~HttpServer() {
  routes_->server.stop();
  routes_->thread.join();
}
int HttpServer::port() const { return routes_->port; }

}  // namespace t2t
