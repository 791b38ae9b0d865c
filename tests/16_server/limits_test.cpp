// What must be true of the server's door when clients, pages of other origins, or whoever finds the
// port send what no client of good will sends.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "16_server/server/guard.hpp"
#include "16_server/server/http_server.hpp"
#include "running.hpp"
#include "support/refuses.hpp"

namespace t2t::limits_test {

using namespace std::chrono_literals;
using std::size_t;

static size_t count_of(const std::string& what, const std::string& text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
  return count;
}

static std::string head(const std::string& line, const std::string& more = "") {
  return line + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n";
}
static std::string post_head(const std::string& more) {
  return head("POST " + chat, "Content-Type: application/json\r\n" + more);
}
static std::string with_body(const std::string& line, const std::string& type,
                             const std::string& body) {
  return head(line, "Content-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
                        "\r\n") +
         body;
}

/// The first line of what comes back, and whether the connection ends then.
static std::string reply_to(const Running& running, const std::string& bytes) {
  const RawConnection raw(running);
  raw.send(bytes);
  bool closed = false;
  const std::string got = raw.receive(3s, &closed);
  CHECK(closed);
  CHECK(count_of("HTTP/1.1 ", got) == (got.empty() ? 0 : 1));
  return got.substr(0, got.find('\r'));
}

TEST_CASE("the body of a refused request is not taken for the next request") {
  const std::string hidden = head("GET /health");
  const Running open;
  CHECK(reply_to(open, with_body("POST " + chat, "text/plain", hidden)) ==
        "HTTP/1.1 415 Unsupported Media Type");
  CHECK(reply_to(open, head("OPTIONS " + chat, "Origin: http://evil.example\r\n") + hidden) ==
        "HTTP/1.1 403 Forbidden");
  const Running locked({.key = "secret"});
  CHECK(reply_to(locked, with_body("POST " + chat, "application/json", hidden)) ==
        "HTTP/1.1 401 Unauthorized");
  // A body that belongs to a request is read, whatever its method is.
  for (const char* line : {"GET /health", "OPTIONS /health", "DELETE /health", "POST /health"}) {
    CAPTURE(line);
    const RawConnection raw(open);
    raw.send(with_body(line, "application/json", hidden));
    CHECK(count_of("HTTP/1.1 ", raw.receive(300ms)) == 1);
  }
}

TEST_CASE("requests that come in one piece are all answered, in their order") {
  const Running running;
  const RawConnection raw(running);
  raw.send(head("GET /health") + with_body("POST " + chat, "application/json", hello("")) +
           head("GET /v1/models", "Connection: close\r\n"));
  const std::string got = raw.receive(10s);
  CHECK(count_of("HTTP/1.1 200", got) == 3);
  const size_t health = got.find("\"ok\""), answer = got.find("chat.completion"),
               models = got.find("\"list\"");
  CHECK(health < answer);
  CHECK(answer < models);
  CHECK(models != std::string::npos);
}

TEST_CASE("a stream for a client of HTTP/1.0 has no chunks, and ends with the connection") {
  const Running running;
  const RawConnection raw(running);
  const std::string body = hello(R"(, "stream": true)");
  raw.send("POST " + chat + " HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  bool closed = false;
  const std::string got = raw.receive(10s, &closed);
  CHECK(closed);
  CHECK(got.find("chunked") == std::string::npos);
  CHECK(got.find("\r\n\r\ndata: {") != std::string::npos);
  CHECK(got.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("who may ask: hosts and origins of the server's own") {
  const auto status = [](const Guard& guard, const std::string& host, const std::string& origin) {
    const auto refused = guard.refusal_of({"GET", "/", host, origin, "", "", "", ""});
    return refused ? refused->status : 200;
  };
  const Guard plain("127.0.0.1", "", "");
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:9", "[::1]"})
    CHECK(status(plain, host, "") == 200);
  for (const char* host : {"", "evil.example", "localhost.evil.example", "evil.example:8080",
                           "192.168.1.5", "127.0.0.1.evil.example", "::1", "[::2]:8080"})
    CHECK(status(plain, host, "") == 403);
  CHECK(status(plain, "localhost:8080", "http://localhost:8080") == 200);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:3000",
                             "http://localhost", "https://evil.example:8080", "file://", "x"})
    CHECK(status(plain, "localhost:8080", origin) == 403);
  const Guard shared("box.example", "", "https://chat.example.org");
  CHECK(status(shared, "box.example:8080", "") == 200);
  CHECK(status(shared, "chat.example.org", "https://chat.example.org") == 200);
  CHECK(status(shared, "box.example", "https://chat.example.org") == 200);
  CHECK(status(shared, "box.example", "http://chat.example.org") == 403);
  for (const char* host : {"192.168.1.5:80", "[fe80::1]:80"}) {
    CHECK(status(Guard("0.0.0.0", "", ""), host, "") == 200);
    CHECK(status(Guard("::", "", ""), host, "") == 200);
  }
  CHECK(status(Guard("0.0.0.0", "", ""), "evil.example", "") == 403);
  for (const char* wrong : {"chat.example.org", "https://", "ftp://a", "https://a/b"})
    REFUSES(Guard("::1", "", wrong),
            std::string("--allow-origin: wanted http://NAME or https://NAME, got ") + wrong);
}

TEST_CASE("a page of an allowed origin gets leave from the server, and no other one") {
  const Running running({.key = "secret", .origin = "https://chat.example.org"});
  const auto asked = [&](const char* origin) {
    return running.client().send("OPTIONS", chat, "", {{"Origin", origin}});
  };
  const HttpResult leave = asked("https://chat.example.org");
  CHECK(leave.status == 204);
  CHECK(leave.headers.at("access-control-allow-origin") == "https://chat.example.org");
  CHECK(leave.headers.at("access-control-allow-headers") == "Authorization, Content-Type");
  CHECK(asked("https://evil.example").status == 403);
  CHECK(!asked("https://evil.example").headers.contains("access-control-allow-origin"));
}

TEST_CASE("200 clients that come at once get an answer or 429 each") {
  const Running running({.connections = 300});
  std::atomic<int> answered = 0, refused = 0, other = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 200; ++i)
    clients.emplace_back([&] {
      try {
        const int status = running.post(chat, hello("")).status;
        ++(status == 200 ? answered : status == 429 ? refused : other);
      } catch (const std::exception&) {
        ++other;
      }
    });
  for (std::thread& client : clients) client.join();
  CHECK(other == 0);
  CHECK(answered > 0);
  CHECK(answered + refused == 200);
}

TEST_CASE("heads and bodies have limits of bytes, however they come") {
  const Running running;
  std::string chunk = "10000\r\n" + std::string(65536, ' ') + "\r\n", chunks;
  for (int i = 0; i < 17; ++i) chunks += chunk;
  CHECK(reply_to(running, post_head("Transfer-Encoding: chunked\r\n") + chunks) ==
        "HTTP/1.1 413 Payload Too Large");
  CHECK(reply_to(running, post_head("Content-Length: 1048577\r\n")) ==
        "HTTP/1.1 413 Payload Too Large");
  CHECK(reply_to(running, post_head("Content-Encoding: gzip\r\nContent-Length: 9\r\n")) ==
        "HTTP/1.1 415 Unsupported Media Type");
  std::string headers;
  for (int i = 0; i < 200000; ++i) headers += "a: b\r\n";
  CHECK(reply_to(running, head("GET /health", headers)) ==
        "HTTP/1.1 431 Request Header Fields Too Large");
  CHECK(reply_to(running, head("GET /health", "a: " + std::string(20000, 'b') + "\r\n")) ==
        "HTTP/1.1 431 Request Header Fields Too Large");
  CHECK(reply_to(running, "GET /health HTTP/1.1\r\n\r\n") == "HTTP/1.1 400 Bad Request");
  CHECK(reply_to(running, "nonsense\r\n\r\n") == "HTTP/1.1 400 Bad Request");
  CHECK(reply_to(running, post_head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n")) ==
        "HTTP/1.1 400 Bad Request");
}

TEST_CASE("heads and bodies have limits of time, even if a byte comes now and then") {
  const Running running({.limits = {.head = 300ms, .body = 300ms}});
  const auto drip = [&](const std::string& begin) {
    const RawConnection raw(running);
    raw.send(begin);
    const auto start = std::chrono::steady_clock::now();
    bool closed = false;
    std::string got;
    while (!closed && std::chrono::steady_clock::now() - start < 10s) {
      raw.send("a");
      got += raw.receive(50ms, &closed);
    }
    CHECK(std::chrono::steady_clock::now() - start >= 250ms);
    CHECK(closed);
    return got.substr(0, got.find('\r'));
  };
  CHECK(drip("GET /") == "HTTP/1.1 408 Request Timeout");
  CHECK(drip(post_head("Content-Length: 1000\r\n")) == "HTTP/1.1 408 Request Timeout");
  // One that says nothing gets nothing.
  bool closed = false;
  CHECK(RawConnection(running).receive(10s, &closed).empty());
  CHECK(closed);
}

TEST_CASE("connections that bring no request make room for others, and do not hold up the end") {
  std::vector<RawConnection> stalled;
  const auto start = [&] {
    Running running({.connections = 16});
    for (int i = 0; i < 50; ++i) {
      stalled.emplace_back(running);
      stalled.back().send("GET /hea");
    }
    CHECK(running.get("/health").status == 200);
    CHECK(running.post(chat, hello("")).status == 200);
    stalled.emplace_back(running);
    stalled.back().send(post_head("Content-Length: 1000\r\n"));
    return std::chrono::steady_clock::now();
  }();
  CHECK(std::chrono::steady_clock::now() - start < 5s);  // a head has 10 s, a body 30 s
}

}  // namespace t2t::limits_test
