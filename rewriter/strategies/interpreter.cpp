#include "rewriter/strategies/interpreter.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/try.hpp"
#include "graph/text/text.hpp"
#include "rewriter/egraph/cost_model.hpp"
#include "rewriter/egraph/saturation.hpp"
#include "rewriter/engine/ensures.hpp"
#include "rewriter/engine/loop_guard.hpp"
#include "rewriter/engine/snapshot.hpp"

namespace pw {
namespace {

using Kind = ast::Strategy::Kind;
using Done = Result<StopReason>;

constexpr std::size_t kMoreNodes = 10'000;

/// Returns true for a stop that ends all enclosing strategies: a limit of the run, or a cycle. Fuel
/// limits one strategy only.
bool ends_repetition(StopReason stop) {
  return stop == StopReason::limit || stop == StopReason::cycle || stop == StopReason::interrupted;
}

/// Informs the watch, if there is one, that the graph may be restored during this scope.
class WatchScope {
 public:
  explicit WatchScope(RunState& run) : watch_(run.watch) {
    if (watch_ != nullptr) watch_->save(run);
  }
  ~WatchScope() {
    if (watch_ != nullptr) watch_->release();
  }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;

 private:
  RunWatch* watch_;
};

}  // namespace

Result<bool> Interpreter::holds(const Strategy& strategy) {
  Result<bool> wanted = decide(strategy);
  if (wanted && run_.watch != nullptr) run_.watch->reach(strategy, *wanted, run_);
  return wanted;
}

Result<bool> Interpreter::decide(const Strategy& strategy) {
  for (const Expr& condition : strategy.when) {
    std::string why;
    Truth truth = PW_TRY(
        evaluate_guard(graph_.context(), &graph_, condition, run_.params, graph_.facts, &why));
    if (truth == Truth::unknown)
      run_.report.warnings.push_back(
          warning_at(condition.span, "PW1102",
                     fmt::format("`when {}` cannot be decided, so `{}` is skipped{}",
                                 print(condition), strategy.label, why.empty() ? "" : ": " + why)));
    if (truth != Truth::yes) return false;
  }
  return true;
}

Done Interpreter::run(const Strategy& strategy, PassStats& stats, bool decided) {
  if (!decided) {
    bool wanted = PW_TRY(holds(strategy));
    if (!wanted) return StopReason::fixpoint;
  }
  // The fuel of a repetition counts its rounds.
  FuelScope fuel(run_, strategy.kind == Kind::repeat ? std::nullopt : strategy.fuel);
  Done done = run_kind(strategy, stats);
  if (done && run_.watch != nullptr) run_.watch->end(strategy, *done, run_);
  if (!done || strategy.kind == Kind::atomic) return done;
  PW_TRY(check_ensures_of(strategy));
  return done;
}

Done Interpreter::run_kind(const Strategy& strategy, PassStats& stats) {
  switch (strategy.kind) {
    case Kind::greedy:
    case Kind::once:
    case Kind::walk: return run_rules(run_, strategy, stats);
    case Kind::reference:
      if (!strategy.builtin.empty()) return run_builtin(strategy, stats);
      return run_parts(strategy, stats);
    case Kind::sequence: return run_parts(strategy, stats);
    case Kind::repeat: return run_repeat(strategy, stats);
    case Kind::atomic: return run_atomic(strategy, stats);
    case Kind::best: return run_best(strategy, stats);
    case Kind::saturate: return run_saturation(run_, strategy, stats);
  }
  return StopReason::fixpoint;
}

Done Interpreter::run_parts(const Strategy& strategy, PassStats& stats) {
  StopReason stop = StopReason::fixpoint;
  for (const Strategy& part : strategy.parts) {
    Done done = run(part, stats);
    if (!done) return done;
    if (*done != StopReason::fixpoint) stop = *done;
  }
  return stop;
}

/// Repeats until a round changes nothing, or the graph equals an earlier one, or has grown beyond
/// what a pass of that graph may make.
Done Interpreter::run_repeat(const Strategy& strategy, PassStats& stats) {
  const bool outermost = most_nodes_ == 0;
  if (outermost) most_nodes_ = kMoreNodes + run_.options.limits.per_node * graph_.node_count();
  Done done = run_rounds(strategy, stats);
  if (outermost) most_nodes_ = 0;
  return done;
}

Done Interpreter::run_rounds(const Strategy& strategy, PassStats& stats) {
  std::uint64_t before = structural_hash(graph_);
  std::map<std::uint64_t, Journal::Mark> seen{{before, run_.report.journal.mark()}};
  for (std::int64_t round = 0; !strategy.fuel || round < *strategy.fuel; ++round) {
    Done done = run_parts(strategy, stats);
    if (!done || ends_repetition(*done)) return done;
    const std::uint64_t after = structural_hash(graph_);
    if (after == before) return StopReason::fixpoint;
    auto [first, fresh] = seen.emplace(after, run_.report.journal.mark());
    if (!fresh) {
      warn_of_cycle(strategy, run_.report.journal.rules_since(first->second));
      return StopReason::cycle;
    }
    if (run_.out_of_fuel()) return StopReason::fuel;
    if (run_.rewrites >= run_.options.limits.rewrites || graph_.node_count() > most_nodes_)
      return StopReason::limit;
    before = after;
  }
  return StopReason::fuel;
}

void Interpreter::warn_of_cycle(const Strategy& strategy, const std::vector<RuleId>& cycle) {
  std::vector<RuleId> distinct;
  for (RuleId rule : cycle)
    if (std::find(distinct.begin(), distinct.end(), rule) == distinct.end())
      distinct.push_back(rule);
  if (distinct.empty()) return;
  Diagnostic warning = warning_at(strategy.span, "PW1103",
                                  fmt::format("the rounds return to an earlier graph: {}",
                                              describe_cycle(run_.rules, distinct)),
                                  "make one of the rules stricter, or remove one");
  for (RuleId r : distinct)
    warning.secondary.push_back({run_.rules[r].name_span, "part of the cycle"});
  run_.report.warnings.push_back(std::move(warning));
}

Result<std::optional<Diagnostic>> Interpreter::broken_promise(const Strategy& strategy) {
  const bool atomic = strategy.kind == Kind::atomic;
  for (const Expr& promise : strategy.ensures) {
    Ensured ensured = PW_TRY(check_ensures(graph_, promise, run_.params));
    if (ensured.truth == Truth::yes) continue;
    if (atomic && run_.watch != nullptr) run_.watch->broken(strategy, promise, ensured, run_);
    return warning_at(
        promise.span, atomic ? "PW1107" : "PW1108",
        fmt::format("`ensures {}` {} after `{}`{}{}", print(promise),
                    ensured.truth == Truth::no ? "does not hold" : "cannot be decided",
                    strategy.label, ensured.values.empty() ? "" : ": " + ensured.values,
                    atomic ? "; all of it is undone" : ""));
  }
  return std::optional<Diagnostic>();
}

Status Interpreter::check_ensures_of(const Strategy& strategy) {
  std::optional<Diagnostic> broken = PW_TRY(broken_promise(strategy));
  if (broken) run_.report.warnings.push_back(std::move(*broken));
  return {};
}

Done Interpreter::run_atomic(const Strategy& strategy, PassStats& stats) {
  const Snapshot before = take_snapshot(run_, stats);
  const WatchScope watched(run_);
  Done done = run_parts(strategy, stats);
  if (!done) return done;
  std::optional<Diagnostic> broken = PW_TRY(broken_promise(strategy));
  if (!broken) return done;
  restore(run_, stats, before);
  run_.report.warnings.push_back(std::move(*broken));
  return StopReason::undone;
}

/// Tries each alternative from the same graph. The winner runs again unless it was the last: runs
/// are deterministic, so its history is recreated instead of stored.
Done Interpreter::run_best(const Strategy& strategy, PassStats& stats) {
  const Snapshot before = take_snapshot(run_, stats);
  const WatchScope watched(run_);
  Choice choice{strategy.label, strategy.by, {}, 0};
  std::size_t last = 0;
  Done done = StopReason::fixpoint;
  const auto run_part = [&](std::size_t i) {
    restore(run_, stats, before);
    if (run_.watch != nullptr) run_.watch->try_alternative(i);
    done = run(strategy.parts[i], stats);
    last = i;
    return done.has_value();
  };
  for (std::size_t i = 0; i < strategy.parts.size(); ++i) {
    if (!run_part(i)) return done;
    CostModel cost(graph_, run_.rules.set(), strategy.by, run_.params);
    choice.costs.push_back(cost.of_graph());
    if (!cost.error().empty()) return tl::unexpected<Diagnostics>(cost.error());
    if (choice.costs[i] < choice.costs[choice.chosen]) choice.chosen = i;
  }
  if (last != choice.chosen && !run_part(choice.chosen)) return done;
  if (run_.watch != nullptr) run_.watch->chose(strategy, choice);
  run_.report.choices.push_back(std::move(choice));
  return done;
}

Done Interpreter::run_builtin(const Strategy& strategy, PassStats& stats) {
  BuiltinEvent event{strategy.builtin, {}};
  if (strategy.builtin == "dce") {
    stats.rewrites += eliminate_dead(graph_, &event.erased);
  } else if (strategy.builtin == "cse") {
    stats.rewrites += eliminate_common(graph_, &event.erased);
  } else if (strategy.builtin == "elide_clones") {
    stats.rewrites += elide_clones(graph_, &event.erased);
  } else {
    return fail(strategy.span, "PW1101",
                fmt::format("there is no built-in pass `{}`", strategy.builtin),
                "the built-in passes are dce, cse and elide_clones");
  }
  run_.report.journal.add(event);
  return StopReason::fixpoint;
}

}  // namespace pw
