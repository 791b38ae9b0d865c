#include "16_server/server/connection.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <sstream>
#include <utility>
#include <variant>

#include "utf8_start.hpp"

namespace t2t {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using std::chrono::milliseconds;

Connection::Connection(Socket socket, Shared& shared)
    : shared_(shared), socket_(std::move(socket)), timer_(socket_.get_executor()) {
  Error ignored;
  peer_ = socket_.remote_endpoint(ignored).address().to_string();
  socket_.set_option(net::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
}

/// A handler that keeps the connection alive, and closes it if anything is thrown, such as for lack
/// of memory: one connection ends, the server does not.
template <class F>
auto Connection::guarded(F what) {
  return [self = shared_from_this(), what = std::move(what)](auto&&... args) mutable {
    try {
      what(args...);
    } catch (...) {
      self->close();
    }
  };
}

/// From now on so much time is left, instead of what was left before.
void Connection::within(milliseconds time, void (Connection::*else_do)()) {
  timer_.expires_after(time);
  timer_.async_wait(guarded([this, else_do, due = timer_.expiry()](Error error) {
    if (!error && timer_.expiry() == due) (this->*else_do)();
  }));
}

void Connection::log(const std::string& line) const {
  if (!shared_.log) return;
  const std::string whole =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {}\n", fmt::gmtime(std::time(nullptr)), line);
  std::fwrite(whole.data(), 1, whole.size(), stderr);  // on a full disk, the server goes on
}

void Connection::close() {
  Error ignored;
  socket_.close(ignored);
  timer_.expires_at(std::chrono::steady_clock::time_point::max());  // nothing is late any more
  end_exchange();
}

/// What is being read comes to an end here, as if the client had sent no more.
void Connection::stop_reading() {
  timed_out_ = true;
  Error ignored;
  socket_.shutdown(Socket::shutdown_receive, ignored);
}

void Connection::read_head() {
  if (shared_.ending) return close();
  awaits_request_ = true;
  parser_.emplace();
  parser_->header_limit(std::uint32_t(shared_.limits.head_bytes));
  parser_->body_limit(shared_.limits.body_bytes);
  within(shared_.limits.head, &Connection::stop_reading);
  http::async_read_header(socket_, buffer_, *parser_, guarded([this](Error error, std::size_t) {
                            error ? on_broken(error) : read_body();
                          }));
}

static std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

static HttpRequest head_of(const http::request<http::string_body>& from) {
  const auto field = [&](http::field name) { return text_of(from[name]); };
  const std::string target = text_of(from.target());
  return {text_of(from.method_string()),
          target.substr(0, target.find('?')),
          field(http::field::host),
          field(http::field::origin),
          field(http::field::authorization),
          field(http::field::content_type),
          field(http::field::content_encoding),
          {}};
}

void Connection::read_body() {
  request_ = head_of(parser_->get());
  version_ = parser_->get().version();
  if (parser_->get().count(http::field::host) != 1) return refuse(refusal(400, "Host: wanted one"));
  if (std::optional<HttpReply> refused = shared_.guard.refusal_of(request_))
    return refuse(std::move(*refused));
  within(shared_.limits.body, &Connection::stop_reading);
  const auto read = [this] {
    http::async_read(socket_, buffer_, *parser_, guarded([this](Error error, std::size_t) {
                       error ? on_broken(error) : on_request();
                     }));
  };
  // A client may wait for leave before it sends a long body.
  if (!beast::iequals(parser_->get()[http::field::expect], "100-continue")) return read();
  out_ = "HTTP/1.1 100 Continue\r\n\r\n";
  net::async_write(socket_, net::buffer(out_),
                   guarded([this, read](Error error, std::size_t) { error ? close() : read(); }));
}

/// The request could not be read to its end.
void Connection::on_broken(Error error) {
  const auto& limits = shared_.limits;
  const bool unfinished =
      error == http::error::end_of_stream || error == http::error::partial_message;
  if (timed_out_ && parser_->got_some())
    refuse(refusal(408, "the request did not come in time"));
  else if (error == http::error::header_limit)
    refuse(refusal(431, fmt::format("wanted a head of at most {} bytes", limits.head_bytes)));
  else if (error == http::error::body_limit)
    refuse(refusal(413, fmt::format("wanted a body of at most {} bytes", limits.body_bytes)));
  else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
           !unfinished)
    refuse(refusal(400, "not HTTP that this server understands: " + printable(error.message())));
  else
    close();
}

void Connection::on_request() {
  request_.body = std::move(parser_->get().body());
  keep_alive_ = parser_->get().keep_alive();
  awaits_request_ = false;
  timer_.expires_at(std::chrono::steady_clock::time_point::max());
  if (Routes::asks(request_)) return hand_over();
  HttpReply reply = shared_.routes.reply(request_);
  send(std::move(reply));
}

/// Another thread reads the body and asks the service, which may take as long as a step.
void Connection::hand_over() {
  const auto on_change = [weak = weak_from_this(), executor = socket_.get_executor()] {
    net::post(executor, [weak] {
      if (const auto self = weak.lock()) self->guarded([](Connection& one) { one.go_on(); })(*self);
    });
  };
  net::post(shared_.readers, [self = shared_from_this(), this, on_change,
                              work = net::make_work_guard(socket_.get_executor())] {
    try {
      net::post(socket_.get_executor(),
                guarded([this, answer = shared_.routes.ask(request_, on_change)]() mutable {
                  if (auto* exchange = std::get_if<std::unique_ptr<Exchange>>(&answer))
                    begin(std::move(*exchange));
                  else
                    send(std::move(std::get<HttpReply>(answer)));
                }));
    } catch (...) {  // no memory for a reply either: nothing holds the connection any more
    }
  });
}

void Connection::refuse(HttpReply reply) {
  keep_alive_ = false;
  send(std::move(reply));
}

/// Writes a whole reply.
void Connection::send(HttpReply reply) {
  log(fmt::format("{} {} {} {}", peer_, printable(request_.method), printable(request_.path, 200),
                  reply.status));
  for (auto& header : shared_.guard.cors_headers(request_))
    reply.headers.push_back(std::move(header));
  response_.emplace(http::status(reply.status), version_);
  response_->set(http::field::content_type, reply.type);
  for (const auto& [name, value] : reply.headers) response_->set(name, value);
  response_->body() = std::move(reply.body);
  response_->keep_alive(keep_alive_);
  response_->prepare_payload();
  if (request_.method == "HEAD") response_->body().clear();
  within(shared_.limits.write, &Connection::close);
  http::async_write(socket_, *response_,
                    guarded([this](Error error, std::size_t) { error ? close() : finish(); }));
}

/// A reply has been written.
void Connection::finish() {
  if (keep_alive_) return read_head();
  // To close while bytes come would make the client's system drop the reply.
  awaits_request_ = true;
  Error ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  buffer_.clear();
  within(milliseconds(2000), &Connection::close);
  drain();
}

void Connection::drain() {
  static constexpr std::size_t most = 1 << 24;
  socket_.async_read_some(buffer_.prepare(4096), guarded([this](Error error, std::size_t bytes) {
                            error || (drained_ += bytes) > most ? close() : drain();
                          }));
}

void Connection::begin(std::unique_ptr<Exchange> exchange) {
  exchange_ = std::move(exchange);
  if (!exchange_->is_stream()) return go_on();
  log(fmt::format("{} {} {} 200", peer_, request_.method, request_.path));
  http::response<http::empty_body> head(http::status::ok, version_);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-cache");
  for (const auto& [name, value] : shared_.guard.cors_headers(request_)) head.set(name, value);
  keep_alive_ =
      keep_alive_ && version_ >= 11;  // HTTP/1.0 has no chunks: the end of the connection ends it
  head.chunked(version_ >= 11);
  head.keep_alive(keep_alive_);
  std::ostringstream text;
  text << head.base();
  write(text.str());
}

/// Sends on what has come from the engine's thread. Called when something has, when a part has been
/// written, and from time to time, to see whether the client is still there.
void Connection::go_on() {
  if (!exchange_ || writing_) return;
  if (exchange_->ended()) return end_exchange(), finish();
  std::string text = exchange_->take();
  const bool ended = exchange_->ended(), whole = !exchange_->is_stream();
  if (ended && whole) {
    const int status = exchange_->status();
    end_exchange();
    return send({status, std::move(text)});
  }
  if (text.empty()) return is_there() ? within(milliseconds(100), &Connection::go_on) : close();
  // A client takes the end of a connection without a last chunk for an answer that has failed.
  const bool failed = ended && exchange_->status() != 200;
  keep_alive_ = keep_alive_ && !failed;
  if (version_ >= 11)
    text = fmt::format("{:x}\r\n{}\r\n{}", text.size(), text, ended && !failed ? "0\r\n\r\n" : "");
  write(std::move(text));
}

void Connection::write(std::string text) {
  out_ = std::move(text), writing_ = true;
  within(shared_.limits.write, &Connection::close);
  net::async_write(socket_, net::buffer(out_), guarded([this](Error error, std::size_t) {
                     writing_ = false;
                     error ? close() : go_on();
                   }));
}

void Connection::end_exchange() {
  if (const std::unique_ptr<Exchange> ended = std::move(exchange_)) log("  " + ended->summary());
}

/// Looks at what has come without taking it: an end of file is a client that has gone.
bool Connection::is_there() {
  char byte;
  Error error;
  socket_.receive(net::buffer(&byte, 1), Socket::message_peek, error);
  return !error || error == net::error::would_block || error == net::error::try_again;
}

}  // namespace t2t
