#include "running.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace t2t {

RawConnection::RawConnection(const Running& running) : file_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in at{};
  at.sin_family = AF_INET, at.sin_port = htons(std::uint16_t(running.server.port()));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(file_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
}

RawConnection::~RawConnection() {
  if (file_ >= 0) close(file_);
}

bool RawConnection::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(std::size_t(sent));
  }
  return true;
}

std::string RawConnection::receive(std::chrono::milliseconds most, bool* closed) const {
  std::string got;
  const auto end = std::chrono::steady_clock::now() + most;
  if (closed) *closed = false;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd one{file_, POLLIN, 0};
    if (left.count() <= 0 || poll(&one, 1, int(left.count())) <= 0) return got;
    char part[4096];
    const ssize_t n = recv(file_, part, sizeof part, 0);
    if (n <= 0) {
      if (closed) *closed = true;
      return got;
    }
    got.append(part, std::size_t(n));
  }
}

}  // namespace t2t
