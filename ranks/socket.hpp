// A TCP socket that is closed when its holder ends, and whole messages on it.
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

  /// Whether something can be read, or a connection taken, within so many milliseconds.
  [[nodiscard]] bool readable(int milliseconds) const;
  /// All bytes; false where the other end is gone, or says nothing for so long.
  bool receive(void* to, std::size_t bytes, int milliseconds) const;
  bool send(const void* from, std::size_t bytes) const;
  /// The next connection to a socket that listens; not open where there is none.
  [[nodiscard]] Socket accept() const;

 private:
  int fd_;
};

/// Listens at a port, 0 for any, of this machine alone or of all its networks; not open where that
/// fails. `port` becomes the one that it is.
[[nodiscard]] Socket listen_at(bool local, int& port);
/// Not open where nobody answers.
[[nodiscard]] Socket connect_to(const std::string& host, const std::string& port);

}  // namespace pw
