// Splitting and planning from the command line.
#pragma once

#include <optional>

#include "cli/rewriting.hpp"
#include "cli/session.hpp"
#include "rewriter/ranges.hpp"
#include "splitter/plan.hpp"

namespace pw::cli {

struct PlanArgs {
  std::vector<std::string> at;
  std::string fold = "auto";
  std::int64_t max_tokens = 8192;
  std::string ranges, sizes, compile_sizes;
  std::int64_t max_requests = 256;
  std::optional<std::int64_t> size_cap;
  std::int64_t speculative_tokens = 0, sequence_parallel = 1;
  std::string mode, loras;
  void add_to(CLI::App& app);
};

/// What split, plan, compile and tune start from.
struct SplitArgs {
  GraphOptions graph;
  RuleOptions rules;
  PlanArgs plan;
  std::string output;
};
/// The graph, rewritten if a pipeline is named, and cut.
struct Prepared {
  LoadedRules rules;
  Graph graph;
  StitchedGraph pieces;
};
Prepared prepared(const Session& session, const SplitArgs& args);

StitchedGraph cut(const Session& session, const Graph& graph, const LoadedRules& rules,
                  const PlanArgs& args);
/// `range`: what the graph is for; sizes and ends outside of it are other graphs'. Then `declared`
/// is what the graph said of its tokens before it was made for a range and under conditions.
Plan planned(const Session& session, const StitchedGraph& pieces, const Graph& graph,
             const LoadedRules& rules, const PlanArgs& args,
             std::optional<TokenRange> range = std::nullopt, const SymbolFact* declared = nullptr);
Table piece_table(const StitchedGraph& pieces);
std::string split_summary(const StitchedGraph& pieces);
std::string plan_summary(const Plan& plan);
/// A row for each step, written as the new tokens of its sequences: `300`, `1,1,5`, `64x1,5`. Ends
/// with kUsage where one is not.
Table dispatch_table(const Session& session, const Plan& plan,
                     const std::vector<std::string>& steps, std::int64_t loras);

}  // namespace pw::cli
