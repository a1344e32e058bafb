// A captured CUDA graph: what its nodes launch and their dependencies, as the driver reports them.
// Nodes are in topological order. Graphs inside graphs are flattened: the node that holds one
// follows that graph's nodes, and depends on its last ones. A conditional node holds a graph for
// each of its bodies, which run as its condition chooses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

/// Kinds of nodes, numbered as CUgraphNodeType.
enum class LaunchKind : std::uint8_t {
  kernel,
  memcpy,
  memset,
  host,
  graph,
  empty,
  wait_event,
  record_event,
  signal_semaphore,
  wait_semaphore,
  allocate,
  free,
  batch,
  conditional,
};
inline constexpr std::size_t kLaunchKinds = 14;
[[nodiscard]] std::string_view name(LaunchKind kind);

/// How a value chooses what runs, numbered as CUgraphConditionalNodeType: the first body if it is
/// not 0, else the second one; the only body while it is not 0; the body of that number.
enum class ConditionKind : std::uint8_t { if_else, loop, choice };
inline constexpr std::size_t kConditionKinds = 3;
/// Returns "if", "while" or "switch".
[[nodiscard]] std::string_view name(ConditionKind kind);

struct CapturedCondition {
  ConditionKind kind = ConditionKind::if_else;
  std::uint32_t bodies = 1;

  friend bool operator==(const CapturedCondition&, const CapturedCondition&) = default;
};

struct CapturedNode {
  LaunchKind kind = LaunchKind::empty;
  std::string name;  ///< of a kernel, demangled; empty if the driver does not report it
  std::array<std::uint32_t, 3> grid = {}, block = {};  ///< of a kernel
  std::uint32_t shared_bytes = 0;                      ///< dynamic shared memory of a kernel
  std::optional<std::uint64_t> bytes;   ///< moved, set, or allocated; unknown for kernels
  std::string label;                    ///< the program's own annotation; may be empty
  std::optional<std::uint32_t> inside;  ///< the node that holds the graph of this one
  /// Set for a conditional node whose bodies the driver reports.
  std::optional<CapturedCondition> condition = {};
  std::uint32_t body = 0;  ///< its number, if `inside` is a conditional node

  friend bool operator==(const CapturedNode&, const CapturedNode&) = default;
};

struct CapturedEdge {
  std::uint32_t from = 0, to = 0;  ///< from < to
  /// A programmatic dependent launch: `to` may start before `from` ends.
  bool programmatic = false;
  std::uint8_t from_port = 0, to_port = 0;  ///< as CUgraphEdgeData

  friend auto operator<=>(const CapturedEdge&, const CapturedEdge&) = default;
};

struct CapturedLaunches {
  std::string name;
  std::vector<CapturedNode> nodes;
  std::vector<CapturedEdge> edges;  ///< sorted by `to`, then `from`

  friend bool operator==(const CapturedLaunches&, const CapturedLaunches&) = default;
};

/// Reorders nodes so that each follows its dependencies, by the given order where that leaves a
/// choice, and sorts the edges. Returns false if there is a cycle.
[[nodiscard]] bool sort_topologically(CapturedLaunches& graph);

struct KernelCount {
  std::string name;
  std::uint64_t launches = 0;   ///< of one replay, without those in bodies of conditional nodes
  std::uint64_t threads = 0;    ///< of all these launches
  std::uint64_t in_bodies = 0;  ///< nodes in bodies of conditional nodes
};

/// A longest path by some weight.
struct CriticalPath {
  std::uint64_t weight = 0;
  std::vector<std::uint32_t> nodes;
};

struct CapturedSummary {
  std::array<std::uint64_t, kLaunchKinds> kinds = {};  ///< number of nodes by kind
  /// Kernel nodes in bodies of conditional nodes: a replay launches them any number of times.
  std::uint64_t kernels_in_bodies = 0;
  std::uint64_t unknown_bodies = 0;  ///< conditional nodes whose bodies are missing
  std::uint64_t programmatic_edges = 0;
  std::uint64_t known_bytes = 0;
  std::vector<KernelCount> kernels;  ///< most nodes first, then by name
  CriticalPath longest;              ///< by number of nodes that do work
  CriticalPath heaviest;             ///< by bytes; empty if none are known
  /// Edges between two kernels of one graph that could be programmatic: the only dependency of the
  /// later one.
  std::vector<std::uint32_t> candidates;  ///< indices of edges
  /// Hash of kinds, kernel names and edges, whatever the order of nodes. Graphs with the same hash
  /// are one class; grids and bytes may differ.
  std::string topology;

  [[nodiscard]] std::uint64_t count(LaunchKind kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
};
[[nodiscard]] CapturedSummary summary_of(const CapturedLaunches& graph);

/// Returns the name of a function without its return type, namespaces, template arguments and
/// parameters: `elementwise_kernel` for `void at::native::elementwise_kernel<4>(int)`.
[[nodiscard]] std::string short_kernel_name(std::string_view demangled);

/// Builds a graph of opaque ops, one for each node, whose operands are its dependencies. Nodes of a
/// graph inside the graph form a group.
[[nodiscard]] Result<Graph> graph_of(const ContextPtr& context, const CapturedLaunches& captured);

/// Writes `piecewise.captured/1`, a line for each node and edge, with the summary.
[[nodiscard]] std::string captured_to_json(const CapturedLaunches& graph);
/// Reads it; the summary is ignored. PW0540: its form differs; PW0541: an unknown member. Every
/// error has its place in the file.
[[nodiscard]] Result<CapturedLaunches> captured_from_json(std::string_view text,
                                                          const std::string& file);
[[nodiscard]] bool looks_like_captured(std::string_view text);

}  // namespace pw
