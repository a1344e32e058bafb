// The inputs and the log that the parts of a runtime share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda/piece_program.hpp"
#include "exec/runner.hpp"

namespace pw::cuda {

struct RuntimeOptions {
  bool strict = false;  ///< library calls and ops between graphs match the interpreter's bits
  rows::GroupingOptions grouping;
  /// Initial capacity of the device's key-value cache, in tokens of all sequences; 0: the maximum
  /// tokens of a step. The cache grows on demand, which makes captured whole steps stale.
  std::int64_t cached_tokens = 0;
  /// Kernels may start before their predecessors in a graph have ended, on sm_90 and newer.
  bool programmatic_edges = false;
  /// They do also where the model predicts a loss (edge_choice.hpp). For tests.
  bool early_at_a_loss = false;
  /// Graphs of several sizes share an executable if their topologies are equal. Capturing takes
  /// less time and memory, but a step of another size than the last updates the executable first.
  bool share_executables = false;
  /// Steps of few tokens use kernels that stream weights, and that join products with their
  /// neighbours (joined_products.hpp). Not in strict runs.
  bool stream_weights = false;
  /// Steps that one launch may run, of one new token of each sequence (step_loop.hpp); 0: loops are
  /// not captured.
  std::int64_t steps_in_launch = 0;
  /// Schedules tuned for the driver's architecture; null: default schedules.
  const ScheduleTable* schedules = nullptr;
};

/// Counts since the runtime was created. A class is recorded once for each size; each of its pieces
/// has its own executable with its own addresses.
struct RuntimeCounters {
  std::size_t pieces = 0, capturable_pieces = 0, piece_classes = 0;
  std::size_t compilations = 0;     ///< of classes
  std::size_t graphs_captured = 0;  ///< class and size, plus whole steps by size
  std::size_t whole_steps = 0;      ///< part of graphs_captured
  std::size_t executables = 0;      ///< piece and size, plus whole steps by size, unless shared
  std::size_t graph_nodes = 0;      ///< total of the executables
  std::size_t early_starts = 0;     ///< of the nodes: those with a programmatic edge
  std::size_t failed_captures = 0;  ///< graphs that run launch by launch instead
  std::size_t allocations = 0;
  std::size_t replays = 0, launches = 0, ops_between = 0;
  std::size_t updates = 0;  ///< of the replays: those that updated a shared executable first
  std::size_t stale = 0;    ///< skipped replays because an address had changed
  std::size_t loops = 0;    ///< part of the executables: many steps in one launch, by size
  std::size_t loop_replays = 0, looped_steps = 0;  ///< steps that they ran
  std::size_t uploads = 0;  ///< inputs of steps that were copied from the host
};

/// Counters and notes of a runtime.
struct RuntimeLog {
  RuntimeCounters counters;
  std::vector<std::string> notes;
  /// Adds a note that is not there yet.
  void note(const std::string& text);
};

/// Work of a runtime: the graph, its plan, and the device.
struct RuntimeTask {
  const StitchedGraph& stitched;
  const Graph& source;
  const Plan& plan;
  Driver& driver;
  RuntimeOptions options;
  /// Returns true if the plan captures whole steps.
  [[nodiscard]] bool captures_steps() const;
  /// Returns true if edges between waiting kernels are programmatic.
  [[nodiscard]] bool starts_early() const;
  /// Returns true if an input stays on the device between steps: a weight or buffer of fixed size.
  [[nodiscard]] bool stays(ValueId input) const;
  /// Returns true if what a step writes to the input is what the next step reads: an integer for
  /// each token.
  [[nodiscard]] bool continues(ValueId input) const;
};

}  // namespace pw::cuda
