// One connection: its requests are read, answered and closed within limits of bytes and time.
//
//   read_head → read_body → (a thread that reads the request and asks the service) → go_on …
//            ↘ refuse → drain                                                     ↘ send →
//            read_head
//
// A request refused for its head alone has an unread body. It must not be mistaken for the next
// request, so the connection ends there. Everything here is for the thread that reads and writes,
// except what `hand_over` leaves to others.
#pragma once

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "16_server/server/guard.hpp"
#include "16_server/server/http_server.hpp"
#include "16_server/server/routes.hpp"

namespace t2t {

/// What the connections of a server share.
struct Shared {
  Guard guard;
  Routes routes;
  ConnectionLimits limits;
  bool log;
  bool ending = false;  // takes no more requests
  boost::asio::thread_pool readers;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::ip::tcp::socket;

  /// What is shared must outlive it.
  Connection(Socket socket, Shared& shared);
  /// Reads and answers one request after the other. It lives as long as it waits for something.
  void read_head();
  /// Answers without having read a request, or all of it, and closes.
  void refuse(HttpReply reply);
  void close();
  /// Whether it waits for a request, and answers none.
  bool awaits_request() const { return awaits_request_; }

 private:
  using Error = boost::system::error_code;

  template <class F>
  auto guarded(F what);
  void within(std::chrono::milliseconds time, void (Connection::*else_do)());
  void stop_reading();
  void read_body();
  void on_broken(Error error);
  void on_request();
  void hand_over();
  void send(HttpReply reply);
  void begin(std::unique_ptr<Exchange> exchange);
  void go_on();
  void write(std::string text);
  void end_exchange();
  void finish();
  void drain();
  bool is_there();
  void log(const std::string& line) const;

  Shared& shared_;
  Socket socket_;
  boost::asio::steady_timer timer_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;  // bytes read; after a request, the beginning of the next
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  HttpRequest request_;
  unsigned version_ = 11;
  bool awaits_request_ = true, timed_out_ = false, writing_ = false, keep_alive_ = false;
  std::optional<boost::beast::http::response<boost::beast::http::string_body>> response_;
  std::unique_ptr<Exchange> exchange_;
  std::string out_;  // what is being written of a stream
  std::size_t drained_ = 0;
};

}  // namespace t2t
