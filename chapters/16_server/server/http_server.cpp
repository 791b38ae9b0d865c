#include "16_server/server/http_server.hpp"

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <stdexcept>
#include <thread>
#include <utility>

#include "16_server/server/connection.hpp"
#include "16_server/server/http_message.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace net = boost::asio;
using net::ip::tcp;
using Error = boost::system::error_code;

/// Each reads bodies of requests and waits until the service has accepted them.
static constexpr std::size_t readers = 8;

struct HttpServer::Impl {
  net::io_context work{1};  // for one thread
  tcp::acceptor acceptor{work};
  net::steady_timer pause{work};
  Shared shared;
  std::size_t most;
  std::list<std::weak_ptr<Connection>> connections;  // the oldest first
  bool accepting = false;                            // or a pause before it
  std::thread thread;

  Impl(Service& service, const ServedModel& served, const HttpOptions& options)
      : shared{{options.host, options.key, options.origin},
               {service, served},
               options.limits,
               options.log,
               false,
               net::thread_pool(readers)},
        most(options.connections) {
    listen(options);
    thread = std::thread([this] { run(); });
  }

  /// If there is no memory to accept a connection, the server goes on, and tries again.
  void run() {
    for (;;) try {
        if (!accepting && acceptor.is_open()) accept();
        work.run();
        return;
      } catch (...) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
  }

  void listen(const HttpOptions& options) {
    try {
      const auto places = tcp::resolver(work).resolve(options.host, std::to_string(options.port));
      const tcp::endpoint at = places.begin()->endpoint();
      acceptor.open(at.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));
      acceptor.bind(at);
      acceptor.listen();  // as many as the system lets wait
    } catch (const boost::system::system_error& error) {
      throw std::runtime_error(
          fmt::format("{}: no server can be started there ({}); --port names another port",
                      host_and_port(options.host, options.port), error.code().message()));
    }
  }

  void accept() {
    acceptor.async_accept([this](Error error, tcp::socket socket) {
      accepting = false;
      if (!acceptor.is_open()) return;
      if (error) return make_room(), accept_later();  // such as no file that may be opened
      accept();
      welcome(std::move(socket));
    });
    accepting = true;
  }

  void accept_later() {
    pause.expires_after(std::chrono::milliseconds(50));
    pause.async_wait([this](Error) {
      accepting = false;
      if (acceptor.is_open()) accept();
    });
    accepting = true;
  }

  void welcome(tcp::socket socket) {
    connections.remove_if([](const auto& one) { return one.expired(); });
    const bool full = connections.size() >= most && !make_room();
    const auto connection = std::make_shared<Connection>(std::move(socket), shared);
    try {
      connections.push_back(connection);
      if (full)
        connection->refuse(refusal(503, "this server has too many connections"));
      else
        connection->read_head();
    } catch (...) {
      connection->close();
    }
  }

  /// Closes the oldest connection without a request being answered.
  bool make_room() {
    for (const auto& one : connections)
      if (const auto connection = one.lock(); connection && connection->awaits_request())
        return connection->close(), true;
    return false;
  }

  void end() {
    shared.ending = true;
    acceptor.close();
    pause.cancel();
    for (const auto& one : connections)
      if (const auto connection = one.lock(); connection && connection->awaits_request())
        connection->close();
  }
};

HttpServer::HttpServer(Service& service, const ServedModel& served, HttpOptions options)
    : impl_(std::make_unique<Impl>(service, served, options)) {}

HttpServer::~HttpServer() {
  net::post(impl_->work, [this] { impl_->end(); });
  impl_->thread.join();
  impl_->shared.readers.join();
}

int HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

}  // namespace t2t
