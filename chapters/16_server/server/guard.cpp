#include "16_server/server/guard.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "16_server/api/headers.hpp"
#include "16_server/api/reply.hpp"
#include "utf8_start.hpp"

namespace t2t {

HttpReply refusal(int status, const std::string& why) { return {status, error_json(status, why)}; }

std::string host_and_port(const std::string& host, int port) {
  const bool in_brackets = host.find(':') != std::string::npos;
  return fmt::format("{}:{}", in_brackets ? '[' + printable(host) + ']' : printable(host), port);
}

/// The name in "name:8080" or "[::1]:8080", in lower case.
static std::string name_in(std::string_view host) {
  const std::size_t bracket = host.find(']');
  const std::size_t from = bracket == std::string_view::npos ? 0 : bracket;
  return lower_case(host.substr(0, host.find(':', from)));
}

/// "192.168.1.5" or "[fe80::1]"
static bool is_address(const std::string& name) {
  in6_addr address;
  if (inet_pton(AF_INET, name.c_str(), &address) == 1) return true;
  return name.size() > 2 && name.front() == '[' && name.back() == ']' &&
         inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &address) == 1;
}

/// The name in "https://name:8080". Empty if it is no origin.
static std::string name_of_origin(const std::string& origin) {
  const std::size_t scheme = origin.starts_with("http://") ? 7 : 8;
  if (scheme == 8 && !origin.starts_with("https://")) return {};
  const std::string host = origin.substr(scheme);
  return host.find_first_of("/?# ") == std::string::npos ? name_in(host) : "";
}

Guard::Guard(const std::string& host, std::string key, std::string origin)
    : any_address_(host == "0.0.0.0" || host == "::"),
      key_(std::move(key)),
      origin_(std::move(origin)) {
  hosts_.push_back(host.find(':') == std::string::npos ? name_in(host) : '[' + host + ']');
  if (origin_.empty()) return;
  hosts_.push_back(name_of_origin(origin_));
  if (hosts_.back().empty())
    throw std::invalid_argument("--allow-origin: wanted http://NAME or https://NAME, got " +
                                printable(origin_));
}

/// No page can give another name to a numeric address.
bool Guard::knows_host(const std::string& name) const {
  return std::ranges::count(hosts_, name) > 0 || (any_address_ && is_address(name));
}

/// Compares the whole key, wherever the first difference is: the time must reveal nothing.
bool Guard::has_key(const HttpRequest& head) const {
  const std::string_view given = bearer_key(head.authorization).value_or("");
  unsigned different = given.size() != key_.size();
  for (std::size_t i = 0; i < std::min(given.size(), key_.size()); ++i)
    different |= unsigned(given[i] ^ key_[i]);
  return different == 0;
}

std::optional<HttpReply> Guard::refusal_of(const HttpRequest& head) const {
  if (!knows_host(name_in(head.host)))
    return refusal(403, fmt::format("Host: wanted the address of this server, got \"{}\" "
                                    "(--allow-origin allows others)",
                                    printable(head.host, 80)));
  // A page of the server's own has the origin that its requests have as their Host.
  const bool own = head.origin == "http://" + head.host || head.origin == "https://" + head.host;
  if (!head.origin.empty() && !own && head.origin != origin_)
    return refusal(403, fmt::format("Origin: wanted a page of this server, got \"{}\" "
                                    "(--allow-origin allows others)",
                                    printable(head.origin, 80)));
  // A browser asks for leave without the key.
  const bool open = head.path == "/" || head.path == "/health" || head.method == "OPTIONS";
  if (!key_.empty() && !open && !has_key(head))
    return refusal(401, "the key: wanted this server's, as \"Authorization: Bearer …\"");
  if (head.method == "POST" && !is_json_type(head.content_type))
    return refusal(415, "Content-Type: wanted application/json");
  if (!head.content_encoding.empty() && head.content_encoding != "identity")
    return refusal(415, "Content-Encoding: wanted none");
  return {};
}

std::vector<std::pair<std::string, std::string>> Guard::cors_headers(
    const HttpRequest& head) const {
  if (head.origin.empty() || head.origin != origin_) return {};
  return {{"Access-Control-Allow-Origin", head.origin},
          {"Access-Control-Allow-Methods", "GET, POST"},
          {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
          {"Vary", "Origin"}};
}

}  // namespace t2t
