// Liveness monitor: a connection to every other rank, on which a separate thread sends a heartbeat
// twice a second, however long the rank's work takes. A closed connection or three seconds of
// silence is a loss; the surviving ranks report it once and exit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

class Lifeline {
 public:
  /// Called on the monitor's thread when a rank is lost (PW1290): with a diagnostic on the least
  /// surviving rank, without one on the others. It ends the process.
  using Lost = std::function<void(const Diagnostics&)>;

  /// Starts to listen, only on this machine if `local`. Fails with PW1290 if there is no network.
  static Result<std::unique_ptr<Lifeline>> open(std::int64_t rank, bool local, Lost lost);
  ~Lifeline();
  /// Returns the one-line address that each other rank must receive.
  [[nodiscard]] std::string address() const;
  /// Connects all ranks by their addresses, in rank order, and begins to detect losses.
  Status connect(const std::vector<std::string>& addresses);
  /// Records the next collective of this rank, in words.
  void enter(const std::string& collective);
  /// Allows the other ranks to exit without a report.
  void finish();

 private:
  struct State;
  explicit Lifeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pw
