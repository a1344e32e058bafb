// Running pipelines from the command line: the tables, and the trace folder.
#pragma once

#include "cli/session.hpp"
#include "rewriter/rewriter.hpp"

namespace pw::cli {

/// Runs the pipeline in place; diagnoses an unknown name.
RewriteReport rewritten(const Session& session, Graph& graph, const LoadedRules& rules,
                        const std::string& pipeline, const RewriteOptions& options);

Table pass_table(const RewriteReport& report, bool times = true);
Table rule_table(const RewriteReport& report);

/// Writes 00-input.pwg, 01-PASS.pwg, … and journal.jsonl.
class Trace {
 public:
  Trace(const Session& session, std::string folder);
  void add(const std::string& pass, const Graph& graph);
  void finish(const RewriteReport& report, const Graph& graph, const RuleSet& rules);

 private:
  const Session& session_;
  std::string folder_;
  int count_ = 0;
};

/// Makes the folder and those above it; throws Exit when it cannot.
void make_folder(const Session& session, const std::string& path);

}  // namespace pw::cli
