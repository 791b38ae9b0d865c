// A client's requests and the replies, whichever library reads and writes them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace t2t {

/// A header that was not sent is empty.
struct HttpRequest {
  std::string method, path;  // "GET", "/v1/models", without what follows a "?"
  std::string host, origin, authorization, content_type, content_encoding;
  std::string body;
};

struct HttpReply {
  int status = 200;
  std::string body = {}, type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// "127.0.0.1:8080", or "[::1]:8080": the colons of an address need brackets before a port.
std::string host_and_port(const std::string& host, int port);

/// A reply that says why there is no other: an error in OpenAI's form.
HttpReply refusal(int status, const std::string& why);

}  // namespace t2t
