#include "rewriter/strategies/driver.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/try.hpp"
#include "graph/named_groups.hpp"
#include "graph/text/text.hpp"
#include "graph/verify.hpp"
#include "rewriter/engine/idle.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/strategies/interpreter.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;

/// Returns "most of them by `rule`".
std::string mostly(const PassStats& stats) {
  const auto most = std::max_element(
      stats.rules.begin(), stats.rules.end(),
      [](const auto& a, const auto& b) { return a.second.matches < b.second.matches; });
  if (most == stats.rules.end() || most->second.matches == 0) return "";
  return fmt::format(", most of them by `{}`", most->first);
}

class Driver {
 public:
  explicit Driver(RunState& run) : run_(run), graph_(run.graph), interpreter_(run) {}

  Status run_all(const Strategy& strategy) {
    if (run_.options.after_pass) run_.options.after_pass("input", graph_);
    if (strategy.kind != Kind::sequence || strategy.parts.empty()) return run_pass(strategy, true);
    Result<bool> wanted = interpreter_.holds(strategy);
    if (!wanted) return forward(wanted);
    FuelScope fuel(run_, strategy.fuel);
    for (const Strategy& pass : strategy.parts)
      if (Status done = run_pass(pass, *wanted); !done) return done;
    return *wanted ? interpreter_.check_ensures_of(strategy) : std::monostate();
  }

 private:
  Status run_pass(const Strategy& pass, bool pipeline_wanted) {
    PassStats stats;
    stats.pass = pass.label;
    run_.pass_spans.emplace(pass.label, pass.span);
    stats.nodes_before = stats.nodes_after = graph_.node_count();
    if (run_.watch != nullptr) run_.watch->begin_pass(pass, run_);
    bool wanted = PW_TRY(pipeline_wanted ? interpreter_.holds(pass) : Result<bool>(false));
    stats.skipped = !wanted;
    if (wanted) PW_TRY(measure(pass, stats));
    run_.report.passes.push_back(std::move(stats));
    if (run_.options.after_pass && wanted) run_.options.after_pass(pass.label, graph_);
    return {};
  }

  Status measure(const Strategy& pass, PassStats& stats) {
    auto start = std::chrono::steady_clock::now();
    const std::map<std::string, std::int64_t> sizes = group_sizes();
    run_.report.journal.add(PassBegin{pass.label, hash(), graph_.node_count()});
    StopReason done = PW_TRY(interpreter_.run(pass, stats, true));
    graph_.drop_dead_operands();
    stats.stop = done;
    stats.nodes_after = graph_.node_count();
    stats.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    run_.report.journal.add(PassEnd{pass.label, hash(), graph_.node_count(), stats.seconds});
    if (done == StopReason::limit)
      run_.report.warnings.push_back(warning_at(
          pass.span, "PW1104",
          fmt::format("pass `{}` was stopped after {}{}, with {} in the graph", pass.label,
                      counted(stats.rewrites, "rewrite"), mostly(stats),
                      counted(stats.nodes_after, "node")),
          "check whether a rule builds what it matches; `fuel N` limits a pass on purpose"));
    if (!sizes.empty()) warn_of_lost(sizes, pass);
    if (!run_.options.verify_each) return {};
    Diagnostics broken = verify(graph_);
    if (!has_errors(broken)) return {};
    for (Diagnostic& d : broken) d.notes.push_back(fmt::format("after pass `{}`", pass.label));
    return tl::unexpected<Diagnostics>(std::move(broken));
  }

  /// Returns the sizes of groups that some op states.
  [[nodiscard]] std::map<std::string, std::int64_t> group_sizes() const {
    std::map<std::string, std::int64_t> out;
    if (!may_size_groups(graph_)) return out;
    for (const NamedGroup& named : named_groups(graph_))
      if (named.ranks != 0) out.emplace(named.group, named.ranks);
    return out;
  }
  /// Warns if a pass removed the only op that states a group's size: a run then assumes all ranks.
  void warn_of_lost(const std::map<std::string, std::int64_t>& before, const Strategy& pass) {
    std::map<std::string, bool> states_size;
    for (const NamedGroup& named : named_groups(graph_))
      states_size[named.group] |= named.ranks != 0;
    for (const auto& [group, ranks] : before)
      if (const auto now = states_size.find(group); now != states_size.end() && !now->second)
        run_.report.warnings.push_back(warning_at(
            pass.span, "PW1117",
            fmt::format("pass `{}` leaves no op that states that group `{}` has {}", pass.label,
                        group, counted(static_cast<std::size_t>(ranks), "rank")),
            "a run of the result would use all ranks for the group; keep an op that has a "
            "`world`"));
  }

  [[nodiscard]] std::uint64_t hash() const {
    return run_.options.hashes ? structural_hash(graph_) : 0;
  }

  RunState& run_;
  Graph& graph_;
  Interpreter interpreter_;
};

std::vector<std::string> strategy_names(const RuleSet& rules) {
  std::vector<std::string> names{"dce", "cse", "elide_clones"};
  for (const auto& [name, strategy] : rules.pipelines) names.push_back(name);
  for (const auto& [name, strategy] : rules.passes) names.push_back(name);
  return names;
}

}  // namespace

std::string_view name(StopReason reason) {
  switch (reason) {
    case StopReason::fixpoint: return "fixpoint";
    case StopReason::fuel: return "fuel";
    case StopReason::limit: return "limit";
    case StopReason::cycle: return "cycle";
    case StopReason::interrupted: return "interrupted";
    case StopReason::undone: return "undone: ensures failed";
  }
  return "?";
}

Result<const Strategy*> find_strategy(const RuleSet& rules, std::string_view name) {
  if (const Strategy* strategy = rules.strategy(name)) return strategy;
  std::string near = nearest(name, strategy_names(rules));
  return fail({}, "PW1101", fmt::format("there is no pipeline or pass `{}`", name),
              near.empty() ? "" : fmt::format("did you mean `{}`?", near));
}

Result<RewriteReport> run_strategy(Graph& graph, RunRules& rules, const Strategy& strategy,
                                   const Env& params, const RewriteOptions& options,
                                   RunWatch* watch) {
  RunState run{graph, rules, params, options, {}, has_barriers(graph), 0, {}, {}, {}, {}, watch};
  PW_TRY(Driver(run).run_all(strategy));
  warn_of_idle(run);
  run.report.journal.settle();
  run.report.journal.keep(rules.opened());
  return std::move(run.report);
}

Result<RewriteReport> run_strategy(Graph& graph, const RuleSet& set, const Strategy& strategy,
                                   const Env& params, const RewriteOptions& options) {
  RunRules rules(set);
  return run_strategy(graph, rules, strategy, params, options);
}

Result<RewriteReport> run_pipeline(Graph& graph, const RuleSet& rules, std::string_view pipeline,
                                   const Env& params, const RewriteOptions& options) {
  const Strategy* strategy = PW_TRY(find_strategy(rules, pipeline));
  if (!strategy->ranges.empty())
    return fail(
        strategy->span, "PW1109",
        fmt::format("`{}` makes a graph for each token range, but one graph is needed", pipeline),
        "`pwr opt` writes one file for each range; run_ranges returns all of them");
  return run_strategy(graph, rules, *strategy, params, options);
}

}  // namespace pw
