// The stages of rewriting one graph, timed: compile, scan, fixpoint, and explain of the engine,
// scan and fixpoint of the rules written by hand, in turn in one process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/hand_compiled.hpp"
#include "dsl/dsl.hpp"

namespace pw::bench {

struct Stages {
  std::size_t nodes = 0;
  std::size_t matches = 0;   ///< in the graph as it is loaded
  std::size_t rewrites = 0;  ///< to the fixpoint
  HandCounts by_rule{};
  double compile = 0;   ///< rules laid out, statistics of the graph, match program
  double scan = 0;      ///< every anchor asked, nothing rewritten
  double fixpoint = 0;  ///< run_pipeline: all of a run, with journal and both hashes
  double hash = 0;      ///< two structural hashes, as a journal that is written to a file has them
  double explain = 0;   ///< why a rule that does not match does not
  double hand_scan = 0, hand_fixpoint = 0;  ///< without a journal and hashes
};

/// Medians of `runs` runs. Ends the program where engine and hand-compiled rules differ in counts
/// or in the final graph.
Stages run_stages(const Graph& graph, const RuleSet& rules, int runs);

/// Runs one stage, and nothing else of the kind, `times` times: what a profiler or a simulator of
/// caches is told to look at by the name of measured_stage().
enum class Stage : std::uint8_t { scan, hand_scan, fixpoint, hand_fixpoint };
void run_stage(Stage stage, const Graph& graph, const RuleSet& rules, int times);

}  // namespace pw::bench

extern "C" void measured_stage(const std::function<void()>& body);
