// A TCP socket that closes with its owner, and complete messages on it.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace pw {

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

  /// Returns true if data or a connection arrives within the time.
  [[nodiscard]] bool readable(int milliseconds) const;
  /// Receives all bytes; returns false if the peer is gone or sends nothing for the given time.
  bool receive(void* to, std::size_t bytes, int milliseconds) const;
  bool send(const void* from, std::size_t bytes) const;
  /// Returns the next connection of a listening socket; not open if there is none.
  [[nodiscard]] Socket accept() const;

 private:
  int fd_;
};

/// Listens at a port (0: any), on this machine alone or on all networks; not open on failure.
/// `port` receives the actual port.
[[nodiscard]] Socket listen_at(bool local, int& port);
/// Connects to a listener; not open if there is no answer.
[[nodiscard]] Socket connect_to(const std::string& host, const std::string& port);

}  // namespace pw
