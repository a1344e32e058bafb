// The connections of `pwr serve` that no thread waits for: those whose headers have not all come,
// and those that have been answered.
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

/// Polls all of them on one thread of its own, and closes what takes too long, so that slow clients
/// cost a descriptor and no thread. Above kMostClients the oldest is closed.
class WaitingRoom {
 public:
  static constexpr std::size_t kMostClients = 256;
  static constexpr std::size_t kMostHeaders = std::size_t{64} << 10;  ///< bytes
  /// Without a byte sent: a browser opens connections ahead of its requests.
  static constexpr std::chrono::seconds kIdle{30};
  static constexpr std::chrono::seconds kHeaders{3};  ///< from their first byte to their last
  static constexpr std::chrono::seconds kGoodbye{2};

  /// Takes over a connection with what has been read of it: the headers and perhaps more.
  using Ready = std::function<void(int socket, std::string read)>;

  /// Of a client that has been answered, `most_bytes` more are taken.
  WaitingRoom(std::size_t most_bytes, Ready ready);
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;
  ~WaitingRoom();

  /// Waits for the headers of a new connection.
  void await_headers(int socket);
  /// Takes what an answered client still sends, then closes: a connection that is closed before
  /// would take the answer along.
  void say_goodbye(int socket);
  /// Closes all connections, and any that is still handed over.
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
  /// Waits until a client sends something, one is late, or one comes.
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
  std::vector<Client> clients_;  // of the thread, the oldest first
  std::thread thread_;
};

}  // namespace pw::cli
