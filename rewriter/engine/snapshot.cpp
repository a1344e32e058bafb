// A snapshot costs its counters and facts; the graph and the journal store only a position.
// Returning to it costs the mutations since then, applied backwards. Rules that frontiers opened
// stay, since their ids do not depend on when they were opened (dsl/run_rules.hpp).
#include "rewriter/engine/snapshot.hpp"

namespace pw {

Snapshot take_snapshot(RunState& run, const PassStats& stats) {
  run.graph.start_undo();
  Snapshot out;
  out.graph = run.graph.checkpoint();
  out.events = run.report.journal.mark();
  out.warnings = run.report.warnings.size();
  out.choices = run.report.choices.size();
  out.saturations = run.report.saturations.size();
  out.conditions = run.report.conditions.size();
  out.rewrites = run.rewrites;
  out.barriers = run.barriers;
  out.facts = run.graph.facts;
  out.fuel = run.fuel;
  out.refused = run.refused;
  out.stats = stats;
  return out;
}

void restore(RunState& run, PassStats& stats, const Snapshot& snapshot) {
  run.graph.rollback(snapshot.graph);
  run.report.journal.rollback(snapshot.events);
  run.report.warnings.resize(snapshot.warnings);
  run.report.choices.resize(snapshot.choices);
  run.report.saturations.resize(snapshot.saturations);
  run.report.conditions.resize(snapshot.conditions);
  run.rewrites = snapshot.rewrites;
  run.barriers = snapshot.barriers;
  run.graph.facts = snapshot.facts;
  run.fuel = snapshot.fuel;
  run.refused = snapshot.refused;
  stats = snapshot.stats;
  if (run.watch != nullptr) run.watch->restore();
}

}  // namespace pw
