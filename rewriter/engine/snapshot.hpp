// A state of a run that it can return to: the graph through its undo journal, and all counters.
// Undone rewrites leave no trace in the history.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

struct Snapshot {
  Graph::Checkpoint graph = 0;
  Journal::Mark events = 0;
  std::size_t warnings = 0, choices = 0, saturations = 0, conditions = 0, rewrites = 0;
  bool barriers = false;
  Facts facts;  ///< of the graph: conditions add to them
  std::vector<std::int64_t> fuel;
  std::set<std::string> refused;
  PassStats stats;
};

/// Takes a snapshot. The graph records mutations from here on; nothing may call forget_undo while
/// the snapshot is in use.
Snapshot take_snapshot(RunState& run, const PassStats& stats);
/// Restores a snapshot; may be called several times for the same one.
void restore(RunState& run, PassStats& stats, const Snapshot& snapshot);

}  // namespace pw
