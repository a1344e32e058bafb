// Runs one strategy tree on the graph of a run: order, repetition, choice and undoing. The rules
// themselves are applied by run_rules.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

class Interpreter {
 public:
  explicit Interpreter(RunState& run) : run_(run), graph_(run.graph) {}

  /// Returns true if its `when` is provable; warns about one that cannot be decided.
  Result<bool> holds(const Strategy& strategy);
  /// Runs a strategy. `decided`: the caller has evaluated `when` already.
  Result<StopReason> run(const Strategy& strategy, PassStats& stats, bool decided = false);
  /// Checks a strategy that is not atomic: warns if its `ensures` does not hold.
  Status check_ensures_of(const Strategy& strategy);

 private:
  Result<StopReason> run_kind(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_parts(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_repeat(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_rounds(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_atomic(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_best(const Strategy& strategy, PassStats& stats);
  Result<StopReason> run_builtin(const Strategy& strategy, PassStats& stats);
  Result<bool> decide(const Strategy& strategy);
  void warn_of_cycle(const Strategy& strategy, const std::vector<RuleId>& cycle);
  /// Returns the warning for a violated promise; nothing if all hold.
  Result<std::optional<Diagnostic>> broken_promise(const Strategy& strategy);

  RunState& run_;
  Graph& graph_;
  std::size_t most_nodes_ = 0;  ///< limit inside a `repeat`; 0 outside
};

/// Scope of a strategy's remaining fuel.
class FuelScope {
 public:
  FuelScope(RunState& run, std::optional<std::int64_t> amount)
      : run_(run), used_(amount.has_value()) {
    if (used_) run_.fuel.push_back(*amount);
  }
  ~FuelScope() {
    if (used_) run_.fuel.pop_back();
  }
  FuelScope(const FuelScope&) = delete;
  FuelScope& operator=(const FuelScope&) = delete;

 private:
  RunState& run_;
  bool used_;
};

}  // namespace pw
