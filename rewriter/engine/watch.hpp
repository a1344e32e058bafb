// Callbacks of a run: the strategies it enters, each rewrite, and what it undoes. A run without a
// watcher pays one test for each rewrite.
// Each save() is followed by one release(), with or without a restore() between them; the scopes
// nest.
#pragma once

#include <span>

#include "rewriter/engine/ensures.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct RunState;

/// Observer of a run. In every call the graph, the journal and the statistics may be read and must
/// not be changed.
class RunWatch {
 public:
  RunWatch() = default;
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  virtual ~RunWatch() = default;

  /// Called when a top-level pass begins; its rewrites are counted from 1.
  virtual void begin_pass(const Strategy& pass, RunState& run) = 0;
  /// Called before a strategy runs, or is skipped because its `when` is not true.
  virtual void reach(const Strategy& strategy, bool wanted, RunState& run) = 0;
  /// Called before a match is replaced, with its nodes in the pattern's order, invalid for absent
  /// operands. If the replacement has no effect, rewrote() does not follow.
  virtual void rewriting(RuleId /*rule*/, std::span<const NodeId> /*nodes*/, RunState& /*run*/) {}
  /// Called after each rewrite by rules of `strategy`; the last event of the journal is the
  /// rewrite.
  virtual void rewrote(const Strategy& strategy, RunState& run) = 0;
  /// Called when a strategy that was reached has run.
  virtual void end(const Strategy& strategy, StopReason stop, RunState& run) = 0;

  /// Called when the present graph may be restored later, until release(). Calls nest.
  virtual void save(RunState& run) = 0;
  /// Called when alternative `i` of a `best of` begins.
  virtual void try_alternative(std::size_t i) = 0;
  /// Called when `promise` of the atomic strategy does not hold in the present graph; restore()
  /// follows.
  virtual void broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
                      RunState& run) = 0;
  /// Called when the graph is back in the state of the last save().
  virtual void restore() = 0;
  /// Called when the graph is that of the chosen alternative.
  virtual void chose(const Strategy& strategy, const Choice& choice) = 0;
  virtual void release() = 0;
};

}  // namespace pw
