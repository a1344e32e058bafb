// Schedules the checks of open documents, keeps their latest results, and publishes diagnostics.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lsp/checks.hpp"
#include "lsp/protocol.hpp"
#include "lsp/workspace.hpp"

namespace pw::cli {

/// Each job is returned once, and only the latest for a document. Results of older texts are
/// dropped.
class DocumentChecks {
 public:
  using Clock = std::chrono::steady_clock;
  DocumentChecks(const Workspace& workspace, std::function<void(const std::string&)> send)
      : workspace_(workspace), send_(std::move(send)) {}

  void configure(const Settings& settings, const ClientCan& client);
  /// Changes the settings that are given, and checks all documents again.
  void configure(const Settings& settings);

  void opened(const std::string& uri);
  void closed(const std::string& uri);
  /// Schedules the changed document, and later all others, which may use it.
  void schedule(const std::string& changed = {});
  /// Forgets the scheduled checks.
  void stop() { due_.clear(); }

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

  /// The latest results of a document, possibly of earlier versions.
  struct Results {
    std::optional<CheckedDocument> checked;
    std::optional<AnalysedDocument> analysed;
    std::optional<JudgedDocument> judged;
  };
  /// Returns the results of a document; null before its first check.
  [[nodiscard]] const Results* results(const std::string& uri) const;

 private:
  /// Returns the results that belong to a checked version; null if they are outdated.
  [[nodiscard]] Results* current(const std::string& uri, std::int64_t version);
  void publish(const std::string& uri);
  [[nodiscard]] std::string graph_of(const OpenDocument& document) const;
  void refresh(std::string_view method);

  const Workspace& workspace_;
  std::function<void(const std::string&)> send_;
  Settings settings_;
  ClientCan client_;
  std::map<std::string, Results> results_;        // by URI
  std::map<std::string, Clock::time_point> due_;  // scheduled checks, by URI
  std::deque<Analysis> analyses_, judgings_;
  std::int64_t requests_ = 0;  // sent to the client
};

}  // namespace pw::cli
