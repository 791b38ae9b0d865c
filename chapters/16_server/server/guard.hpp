// Who may ask: decided from a request's head alone, before its body is read.
//
// A browser lets any page send requests to any address, even this machine's own, and only keeps the
// page from reading the reply. But a request names its page's origin, which must be one of the
// server's own pages. A page can also give its own name the address 127.0.0.1 ("DNS rebinding"):
// then the origin looks right, but the request's Host is that name, not one of the server's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "16_server/server/http_message.hpp"

namespace t2t {

class Guard {
 public:
  /// `host` is the address that the server listens on. `key` is what clients must send as
  /// "Authorization: Bearer KEY", or empty. `origin`, such as "https://chat.example.org", is the
  /// origin of other pages that may use the server, or empty. Throws std::invalid_argument if it is
  /// not of this form.
  Guard(const std::string& host, std::string key, std::string origin);

  /// Why this request must be refused: its Host or its Origin (403), its key (401), or its type
  /// (415).
  std::optional<HttpReply> refusal_of(const HttpRequest& head) const;
  /// The CORS headers that let a page of `origin` read the reply; none for others.
  std::vector<std::pair<std::string, std::string>> cors_headers(const HttpRequest& head) const;

 private:
  bool knows_host(const std::string& name) const;
  bool has_key(const HttpRequest& head) const;

  std::vector<std::string> hosts_ = {"localhost", "127.0.0.1", "[::1]"};
  bool any_address_;  // listens on all of the machine's addresses
  std::string key_, origin_;
};

}  // namespace t2t
