// A state of a run that it can return to: the graph through its undo journal, and all counters.
// What was undone leaves no trace in the history.
#pragma once

#include "rewriter/engine/run_state.hpp"

namespace pw {

struct Snapshot {
  Graph::Checkpoint graph = 0;
  Journal::Mark events = 0;
  std::size_t warnings = 0, choices = 0, saturations = 0, conditions = 0, rewrites = 0;
  bool barriers = false;
  Facts facts;  ///< of the graph: those that conditions add go with them
  std::vector<std::int64_t> fuel;
  std::set<std::string> refused;
  PassStats stats;
};

/// The graph records from here on; nothing may call forget_undo until the snapshot is done with.
Snapshot take_snapshot(RunState& run, const PassStats& stats);
/// May be called several times for one snapshot.
void restore(RunState& run, PassStats& stats, const Snapshot& snapshot);

}  // namespace pw
