#include "ranks/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pw {

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

bool Socket::readable(int milliseconds) const {
  pollfd waits{fd_, POLLIN, 0};
  return ::poll(&waits, 1, milliseconds) == 1;
}

bool Socket::receive(void* to, std::size_t bytes, int milliseconds) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (!readable(milliseconds)) return false;
    const ssize_t got = ::recv(fd_, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool Socket::send(const void* from, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd_, at, bytes, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

Socket Socket::accept() const { return Socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }

Socket listen_at(bool local, int& port) {
  Socket out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(out.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
  own.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t length = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  if (::bind(out.fd(), address, sizeof own) != 0 || ::listen(out.fd(), 128) != 0 ||
      ::getsockname(out.fd(), address, &length) != 0)
    return Socket();
  port = ntohs(own.sin_port);
  return out;
}

Socket connect_to(const std::string& host, const std::string& port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return Socket();
  Socket out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool made = ::connect(out.fd(), found->ai_addr, found->ai_addrlen) == 0;
  ::freeaddrinfo(found);
  if (!made) return Socket();
  const int on = 1;
  ::setsockopt(out.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return out;
}

}  // namespace pw
