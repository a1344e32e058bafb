// Running pipelines from the command line: the graphs they make, the tables, and the trace folder.
#pragma once

#include "cli/session.hpp"
#include "rewriter/ranges.hpp"

namespace pw::cli {

/// Runs the pipeline in place; diagnoses an unknown name, and one that makes a graph for each
/// range.
RewriteReport rewritten(const Session& session, Graph& graph, const LoadedRules& rules,
                        const std::string& pipeline, const RewriteOptions& options);

/// A graph for each range, and for the steps that do not meet its conditions; one for a pipeline
/// without either. `options` are asked for each range.
using OptionsFor = std::function<RewriteOptions(const std::string& variant)>;
std::vector<RangedResult> rewritten_variants(const Session& session, const Graph& graph,
                                             const LoadedRules& rules, const std::string& pipeline,
                                             const OptionsFor& options);
/// "1-256", "1-256.otherwise"; empty for the one graph of a pipeline without ranges.
std::string variant_name(const LoadedRules& rules, const std::string& pipeline,
                         const RangedResult& variant);
/// "out.json" and "1-256" → "out.1-256.json".
std::string variant_path(const std::string& path, const std::string& variant);
/// Says for which steps a graph with conditions is right.
void say_conditions(const Session& session, const RangedResult& variant,
                    const std::string& otherwise);

/// What went wrong in a run; rules and passes that did nothing only if `idle` is wanted.
void report_warnings(const Session& session, const RewriteReport& report, bool idle);

Table pass_table(const RewriteReport& report, bool times = true);
Table rule_table(const RewriteReport& report, bool times = true);
/// The tables of all variants in one, the variant's name before each row where there are names.
Table joined(const std::vector<std::pair<std::string, Table>>& tables);

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
