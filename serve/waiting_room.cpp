#include "serve/waiting_room.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pw::cli {

WaitingRoom::WaitingRoom(std::size_t most_bytes, Ready ready)
    : most_bytes_(most_bytes),
      ready_(std::move(ready)),
      event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

WaitingRoom::~WaitingRoom() {
  stop();
  ::close(event_);
}

void WaitingRoom::await_headers(int socket) {
  put({.socket = socket, .deadline = Clock::now() + kIdle});
}

void WaitingRoom::say_goodbye(int socket) {
  ::shutdown(socket, SHUT_WR);
  put({.socket = socket, .answered = true, .deadline = Clock::now() + kGoodbye});
}

void WaitingRoom::put(Client client) {
  const std::lock_guard lock(mutex_);
  if (stopped_) {
    ::close(client.socket);
    return;
  }
  coming_.push_back(std::move(client));
  wake();
}

void WaitingRoom::wake() const {
  const std::uint64_t one = 1;
  static_cast<void>(::write(event_, &one, sizeof one));
}

void WaitingRoom::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    wake();
  }
  if (thread_.joinable()) thread_.join();
  admit();
  for (const Client& client : std::exchange(clients_, {})) ::close(client.socket);
}

void WaitingRoom::admit() {
  const std::lock_guard lock(mutex_);
  std::move(coming_.begin(), coming_.end(), std::back_inserter(clients_));
  coming_.clear();
  while (clients_.size() > kMostClients) {
    ::close(clients_.front().socket);
    clients_.erase(clients_.begin());
  }
}

void WaitingRoom::run() {
  while (!stopped_) {
    admit();
    const std::vector<bool> readable = wait();
    std::vector<Client> staying;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      Client& client = clients_[i];
      const Next next = readable[i]                      ? receive(client)
                        : client.deadline < Clock::now() ? Next::close
                                                         : Next::stay;
      if (next == Next::stay) staying.push_back(std::move(client));
      if (next == Next::close) ::close(client.socket);
      if (next == Next::hand_over) ready_(client.socket, std::move(client.read));
    }
    clients_ = std::move(staying);
  }
}

std::vector<bool> WaitingRoom::wait() const {
  using std::chrono::milliseconds;
  std::vector<pollfd> polled;
  Clock::time_point first = Clock::now() + kIdle;
  for (const Client& client : clients_) {
    polled.push_back({client.socket, POLLIN, 0});
    first = std::min(first, client.deadline);
  }
  polled.push_back({event_, POLLIN, 0});
  const auto left = std::chrono::duration_cast<milliseconds>(first - Clock::now()).count() + 1;
  ::poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(left, 0)));
  std::uint64_t woken = 0;
  static_cast<void>(::read(event_, &woken, sizeof woken));
  std::vector<bool> readable;
  for (const pollfd& one : polled) readable.push_back(one.revents != 0);
  return readable;
}

WaitingRoom::Next WaitingRoom::receive(Client& client) const {
  std::array<char, std::size_t{1} << 14> block;
  const ssize_t got = ::recv(client.socket, block.data(), block.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Next::stay : Next::close;
  if (got == 0 || client.deadline < Clock::now()) return Next::close;
  const auto size = static_cast<std::size_t>(got);
  if (client.answered) {
    client.taken += size;
    return client.taken < most_bytes_ ? Next::stay : Next::close;
  }
  if (client.read.empty()) client.deadline = Clock::now() + kHeaders;
  client.read.append(block.data(), size);
  return take_headers(client, size);
}

/// `size`: the number of bytes just received.
WaitingRoom::Next WaitingRoom::take_headers(Client& client, std::size_t size) const {
  constexpr std::string_view kEmptyLine = "\r\n\r\n";
  const std::size_t before = client.read.size() - size;
  const std::size_t from = before - std::min(before, kEmptyLine.size() - 1);
  if (client.read.find(kEmptyLine, from) != std::string::npos) return Next::hand_over;
  if (client.read.size() < kMostHeaders) return Next::stay;
  // Too many: closes the connection without reading the rest.
  ::shutdown(client.socket, SHUT_WR);
  client.answered = true;
  client.read = {};
  client.deadline = Clock::now() + kGoodbye;
  return Next::stay;
}

}  // namespace pw::cli
