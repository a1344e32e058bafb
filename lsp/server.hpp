// The language server as a message processor. Responses are computed from the texts immediately;
// checks run in parallel and report when they finish.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lsp/checks.hpp"
#include "lsp/protocol.hpp"
#include "lsp/view.hpp"

namespace pw::cli {

/// The server without threads and streams; never throws.
class Server {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Server(std::function<void(const std::string&)> send) : send_(std::move(send)) {}

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

  // ---- checks; each job is returned once, and only the latest for a document
  [[nodiscard]] std::optional<Clock::time_point> next_check() const;
  std::optional<CheckJob> take_check();  ///< returns a job that is due
  void checked(CheckedDocument result);
  struct Analysis {
    CheckJob job;
    std::shared_ptr<Draft> draft;
  };
  std::optional<Analysis> take_analysis();
  void analysed(AnalysedDocument result);
  /// Returns a document to judge, once no analysis is pending.
  std::optional<Analysis> take_judging();
  void judged(JudgedDocument result);

 private:
  using Answer = tl::expected<std::string, RpcError>;
  using Handler = Answer (Server::*)(const Params&);
  struct Method {
    std::string_view name;
    Handler handler;
    bool request;
  };
  static const std::vector<Method>& methods();

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
  Answer hover_at(const Params& params);
  Answer define(const Params& params);
  Answer refer(const Params& params);
  Answer highlight(const Params& params);
  Answer document_symbols(const Params& params);
  Answer workspace_symbols(const Params& params);
  Answer complete_at(const Params& params);
  Answer signature_at(const Params& params);
  Answer format(const Params& params);
  Answer prepare_rename(const Params& params);
  Answer rename_at(const Params& params);
  Answer tokens(const Params& params);
  Answer hints(const Params& params);
  Answer actions(const Params& params);
  Answer lenses(const Params& params);
  Answer execute(const Params& params);

  /// Returns the document and the known facts about it, or an error.
  tl::expected<DocumentView, RpcError> view_of(const Params& params) const;
  struct Placed {
    DocumentView view;
    std::uint32_t offset = 0;
  };
  tl::expected<Placed, RpcError> placed(const Params& params) const;

  struct State {
    std::optional<CheckedDocument> checked;
    std::optional<AnalysedDocument> analysed;
    std::optional<JudgedDocument> judged;
  };
  void ask_check(const std::string& uri, Clock::time_point due);
  void ask_checks(const std::string& changed);
  void publish(const std::string& uri);
  [[nodiscard]] std::string verdict_text(const Params& params, const HoverText& at) const;
  [[nodiscard]] std::string graph_of(const OpenDocument& document) const;
  void refresh(std::string_view method);

  std::function<void(const std::string&)> send_;
  Workspace workspace_;
  std::map<std::string, State> states_;  // by URI
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::optional<Clock::time_point> shutdown_due_;  ///< deadline of a pending `shutdown`
  std::map<std::string, Clock::time_point> due_;   // pending checks, by URI
  std::deque<Analysis> analyses_, judgings_;
  Settings settings_;
  ClientCan client_;
  bool initialized_ = false, shut_down_ = false;
  std::optional<int> exit_;
  std::int64_t asked_ = 0;  // number of server requests
};

/// Serves on standard input and output until `exit` or end of input.
int serve();

}  // namespace pw::cli
