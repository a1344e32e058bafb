// Timed stages of rewriting one graph: compile, scan, fixpoint and explain of the engine, and scan
// and fixpoint of the hand-written rules, alternating in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/hand_compiled.hpp"
#include "dsl/dsl.hpp"

namespace pw::bench {

struct Stages {
  std::size_t nodes = 0;
  std::size_t matches = 0;   ///< in the loaded graph
  std::size_t rewrites = 0;  ///< to the fixpoint
  HandCounts by_rule{};
  double compile = 0;   ///< rule layout, graph statistics, match program
  double scan = 0;      ///< every anchor tried, nothing rewritten
  double fixpoint = 0;  ///< run_pipeline: a complete run, with journal and both hashes
  double hash = 0;      ///< two structural hashes, as a written journal requires
  double explain = 0;   ///< why a rule does not match
  double hand_scan = 0, hand_fixpoint = 0;  ///< without a journal and hashes
};

/// Returns medians of `runs` runs. Exits if engine and hand-written rules differ in counts or in
/// the final graph.
Stages run_stages(const Graph& graph, const RuleSet& rules, int runs);

/// Runs one stage `times` times and nothing else, for a profiler or cache simulator restricted to
/// measured_stage().
enum class Stage : std::uint8_t { scan, hand_scan, fixpoint, hand_fixpoint };
void run_stage(Stage stage, const Graph& graph, const RuleSet& rules, int times);

}  // namespace pw::bench

extern "C" void measured_stage(const std::function<void()>& body);
