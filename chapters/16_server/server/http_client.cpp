#include "16_server/server/http_client.hpp"

#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "16_server/api/headers.hpp"
#include "utf8_start.hpp"

namespace t2t {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using net::ip::tcp;

HttpClient::HttpClient(const std::string& url, std::chrono::seconds patience)
    : url_(url), patience_(patience) {
  static constexpr std::string_view scheme = "http://";
  std::string name = url.starts_with(scheme) ? url.substr(scheme.size()) : "";
  while (name.ends_with('/')) name.pop_back();
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && name.find(']', colon) == std::string::npos) {
    port_ = name.substr(colon + 1);
    name.resize(colon);
  }
  host_ = name.starts_with('[') && name.ends_with(']') ? name.substr(1, name.size() - 2) : name;
  if (host_.empty() || host_.find('/') != std::string::npos || port_.empty() ||
      port_.find_first_not_of("0123456789") != std::string::npos)
    throw std::invalid_argument("wanted http://HOST:PORT, got " + printable(url));
}

/// Waits for what is begun with a token, and returns or throws what it says.
template <class Begin>
static auto wait_for(net::io_context& work, Begin begin) {
  auto result = begin(net::use_future);
  work.restart();
  work.run();
  return result.get();
}

HttpResult HttpClient::send(const std::string& method, const std::string& path,
                            const std::string& body, const HttpHeaders& headers,
                            const std::function<bool(std::string_view)>& take) const try {
  net::io_context work;
  beast::tcp_stream stream(work);
  stream.expires_after(patience_);
  const auto places = tcp::resolver(work).resolve(host_, port_);
  wait_for(work, [&](auto token) { return stream.async_connect(places, token); });
  stream.socket().set_option(tcp::no_delay(true));

  http::request<http::string_body> request;
  request.method_string(method), request.target(path), request.version(11);
  request.set(http::field::host, url_.substr(url_.find("//") + 2));
  for (const auto& [name, value] : headers) request.set(name, value);
  request.body() = body;
  request.keep_alive(false), request.prepare_payload();
  wait_for(work, [&](auto token) { return http::async_write(stream, request, token); });

  beast::flat_buffer buffer;
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  parser.skip(method == "HEAD");
  wait_for(work,
           [&](auto token) { return http::async_read_header(stream, buffer, parser, token); });
  HttpResult result{int(parser.get().result_int()), {}, {}};
  for (const auto& field : parser.get()) {
    const auto name = field.name_string();
    result.headers[lower_case({name.data(), name.size()})] = {field.value().data(),
                                                              field.value().size()};
  }
  std::array<char, 4096> part;
  while (!parser.is_done()) {
    stream.expires_after(patience_);
    parser.get().body().data = part.data(), parser.get().body().size = part.size();
    wait_for(work,
             [&](auto token) { return http::async_read_some(stream, buffer, parser, token); });
    const std::string_view came(part.data(), part.size() - parser.get().body().size);
    if (take && !take(came)) break;
    if (!take) result.body += came;
  }
  return result;
} catch (const boost::system::system_error& error) {
  throw std::runtime_error(error.code().message());
}

}  // namespace t2t
