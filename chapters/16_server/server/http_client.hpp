// An HTTP client, for the load and for checks: one request, its reply, and the connection ends.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace t2t {

using HttpHeaders = std::map<std::string, std::string>;

struct HttpResult {
  int status = 0;
  HttpHeaders headers;  // their names in lower case
  std::string body;     // the whole body, unless its parts are taken
};

class HttpClient {
 public:
  /// `url` is "http://127.0.0.1:8080". Throws std::invalid_argument if it is not of this form.
  explicit HttpClient(const std::string& url,
                      std::chrono::seconds patience = std::chrono::seconds(600));

  /// `take` receives the parts of the body as they arrive, and returns false to stop. Throws
  /// std::runtime_error if no reply comes, or not all of it, within the patience.
  HttpResult send(const std::string& method, const std::string& path, const std::string& body = {},
                  const HttpHeaders& headers = {},
                  const std::function<bool(std::string_view)>& take = {}) const;

 private:
  std::string url_, host_, port_ = "80";
  std::chrono::seconds patience_;
};

}  // namespace t2t
