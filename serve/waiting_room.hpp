// Idle connections of `pwr serve`, without a thread each: those with incomplete headers, and those
// that were answered.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pw::cli {

/// Polls all connections on one thread and closes late ones, so that a slow client occupies a
/// descriptor but no thread. Closes the oldest above kMostClients.
class WaitingRoom {
 public:
  static constexpr std::size_t kMostClients = 256;
  static constexpr std::size_t kMostHeaders = std::size_t{64} << 10;  ///< bytes
  /// Limit without any bytes: browsers open connections in advance.
  static constexpr std::chrono::seconds kIdle{30};
  static constexpr std::chrono::seconds kHeaders{3};  ///< from their first byte to their last
  static constexpr std::chrono::seconds kGoodbye{2};

  /// Receives a connection with the bytes read: the headers, and possibly more.
  using Ready = std::function<void(int socket, std::string read)>;

  /// At most `most_bytes` are drained from an answered client.
  WaitingRoom(std::size_t most_bytes, Ready ready);
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;
  ~WaitingRoom();

  /// Adds a new connection and waits for its headers.
  void await_headers(int socket);
  /// Drains an answered client, then closes. An earlier close would discard the response.
  void say_goodbye(int socket);
  /// Closes all connections, including later ones.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    int socket = -1;
    bool answered = false;
    std::string read = {};
    std::size_t taken = 0;  ///< bytes since the answer
    Clock::time_point deadline = {};
  };
  enum class Next : std::uint8_t { stay, close, hand_over };

  void put(Client client);
  void wake() const;
  void run();
  /// Waits for input, a timeout, or a new connection.
  [[nodiscard]] std::vector<bool> wait() const;
  void admit();
  Next receive(Client& client) const;
  Next take_headers(Client& client, std::size_t size) const;

  std::size_t most_bytes_;
  Ready ready_;
  int event_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::vector<Client> coming_;   // under the mutex
  std::vector<Client> clients_;  // owned by the thread, oldest first
  std::thread thread_;
};

}  // namespace pw::cli
