// Whether the other ranks of a run live: a connection to each, on which every rank sends a sign of
// life twice a second from a thread of its own, however long its work takes. A closed connection or
// three seconds of silence is a loss, which the ranks that are left tell once, and end.
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
  /// Called on the lifeline's thread where a rank is lost (PW1290): on the least rank that lives
  /// with what is to be told, on others with nothing. It ends the process.
  using Lost = std::function<void(const Diagnostics&)>;

  /// Listens; on this machine alone where `local`. PW1290 where there is no network.
  static Result<std::unique_ptr<Lifeline>> open(std::int64_t rank, bool local, Lost lost);
  ~Lifeline();
  /// What the other ranks connect to: one line, to be told to each of them.
  [[nodiscard]] std::string address() const;
  /// Connects all ranks; `addresses` by rank. From now on losses are seen.
  Status connect(const std::vector<std::string>& addresses);
  /// The collective that this rank comes to next, in words.
  void enter(const std::string& collective);
  /// The other ranks may end from now on.
  void finish();

 private:
  struct State;
  explicit Lifeline(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pw
