// Callbacks of a run: the strategies it enters, each rewrite, and what it undoes. A run that nobody
// watches pays one test a rewrite.
#pragma once

#include <span>

#include "rewriter/engine/ensures.hpp"
#include "rewriter/rewriter.hpp"

namespace pw {

struct RunState;

/// The graph, the journal and the statistics of the run are readable in every call and may not be
/// changed in one.
class RunWatch {
 public:
  RunWatch() = default;
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  virtual ~RunWatch() = default;

  /// A top-level pass begins; its rewrites are counted from 1.
  virtual void begin_pass(const Strategy& pass, RunState& run) = 0;
  /// A strategy is about to run, or is left out because its `when` is not true.
  virtual void reach(const Strategy& strategy, bool wanted, RunState& run) = 0;
  /// A match is about to be replaced; its nodes as they stand, in the pattern's order, invalid
  /// where an operand is absent. Where nothing came of it, rewrote() does not follow.
  virtual void rewriting(RuleId /*rule*/, std::span<const NodeId> /*nodes*/, RunState& /*run*/) {}
  /// After each rewrite by rules of `strategy`; the last event of the journal is the rewrite.
  virtual void rewrote(const Strategy& strategy, RunState& run) = 0;
  /// A strategy that was reached has run.
  virtual void end(const Strategy& strategy, StopReason stop, RunState& run) = 0;

  /// The graph may be brought back to how it is now, until release() is called. These nest.
  virtual void save(RunState& run) = 0;
  /// Alternative `i` of a `best of` begins.
  virtual void try_alternative(std::size_t i) = 0;
  /// `promise` of the atomic strategy does not hold in the graph as it stands; restore() follows.
  virtual void broken(const Strategy& strategy, const Expr& promise, const Ensured& ensured,
                      RunState& run) = 0;
  /// The graph is as it was at the last save().
  virtual void restore() = 0;
  /// The graph is that of the chosen alternative.
  virtual void chose(const Strategy& strategy, const Choice& choice) = 0;
  virtual void release() = 0;
};

}  // namespace pw
