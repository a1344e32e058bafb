// The language server as a message processor. Responses are computed from the texts immediately;
// checks run in parallel and report when they finish.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lsp/answers.hpp"
#include "lsp/document_checks.hpp"
#include "lsp/protocol.hpp"

namespace pw::cli {

/// The server without threads and streams; never throws.
class Server {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Server(std::function<void(const std::string&)> send)
      : send_(std::move(send)), checks_(workspace_, send_), answers_(workspace_, checks_) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Queues a frame's messages for work(). A request cancelled before it runs is answered as
  /// cancelled. Consecutive changes of a document are merged.
  void receive(const std::string& content);
  void refuse_frame(const std::string& problem);
  /// Processes the oldest message; false if there is none. Call it when no frame is available. Once
  /// `shutdown` has waited for kPatience, older messages are rejected.
  bool work();
  static constexpr std::chrono::seconds kPatience{2};
  /// The queued messages, and the bytes of their frames.
  struct Backlog {
    std::size_t messages = 0, bytes = 0;
  };
  [[nodiscard]] Backlog backlog() const { return {waiting_.size(), waiting_bytes_}; }
  /// Set by `exit`: 0 after `shutdown`, otherwise 1.
  [[nodiscard]] std::optional<int> exit_code() const { return exit_; }

  [[nodiscard]] DocumentChecks& checks() { return checks_; }

 private:
  using Handler = Answer (Server::*)(const Params&);
  /// Returns the handler of the life cycle or of a document's change; null for others.
  static Handler handler(std::string_view method);

  struct Waiting {
    Message message;
    std::size_t bytes = 0;  ///< size of its frame; a batch counts with its first message
  };
  void put(Message message, std::size_t bytes);
  void cancel(const MessageId& id);
  void handle(const Message& message);
  Answer initialize(const Params& params);
  Answer initialized(const Params& params);
  Answer shutdown(const Params& params);
  Answer exit(const Params& params);
  Answer configure(const Params& params);
  Answer ignore(const Params& params);
  Answer open(const Params& params);
  Answer change(const Params& params);
  Answer save(const Params& params);
  Answer close(const Params& params);

  Answer answer(const Message& message);

  std::function<void(const std::string&)> send_;
  Workspace workspace_;
  DocumentChecks checks_;
  Answers answers_;
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::optional<Clock::time_point> shutdown_due_;  ///< deadline of a pending `shutdown`
  bool initialized_ = false, shut_down_ = false;
  std::optional<int> exit_;
};

/// Serves on standard input and output until `exit` or end of input.
int serve();

}  // namespace pw::cli
