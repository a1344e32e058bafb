// A captured CUDA graph: what its nodes launch and their dependencies, as the driver reports them.
// Nodes are in topological order. Graphs inside graphs are flattened: the node that holds one
// follows that graph's nodes, and depends on its last ones.
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

struct CapturedNode {
  LaunchKind kind = LaunchKind::empty;
  std::string name;  ///< of a kernel, demangled; empty if the driver does not report it
  std::array<std::uint32_t, 3> grid = {}, block = {};  ///< of a kernel
  std::uint32_t shared_bytes = 0;                      ///< dynamic shared memory of a kernel
  std::optional<std::uint64_t> bytes;   ///< moved, set, or allocated; unknown for kernels
  std::string label;                    ///< the program's own annotation; may be empty
  std::optional<std::uint32_t> inside;  ///< the node that holds the graph of this one

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
  std::uint64_t launches = 0;
  std::uint64_t threads = 0;  ///< of all launches
};

/// A longest path by some weight.
struct CriticalPath {
  std::uint64_t weight = 0;
  std::vector<std::uint32_t> nodes;
};

struct CapturedSummary {
  std::array<std::uint64_t, kLaunchKinds> kinds = {};  ///< number of nodes by kind
  std::uint64_t programmatic_edges = 0;
  std::uint64_t known_bytes = 0;
  std::vector<KernelCount> kernels;  ///< most launches first, then by name
  CriticalPath longest;              ///< by number of nodes that do work
  CriticalPath heaviest;             ///< by bytes; empty if none are known
  /// Edges between two kernels that could be programmatic: the only dependency of the later one.
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

/// Builds a graph of opaque ops, one for each node, whose operands are its dependencies.
[[nodiscard]] Result<Graph> graph_of(const ContextPtr& context, const CapturedLaunches& captured);

/// Writes `piecewise.captured/1`, a line for each node and edge, with the summary.
[[nodiscard]] std::string captured_to_json(const CapturedLaunches& graph);
/// Reads it; the summary is ignored. PW0540: its form differs; PW0541: an unknown member. Every
/// error has its place in the file.
[[nodiscard]] Result<CapturedLaunches> captured_from_json(std::string_view text,
                                                          const std::string& file);
[[nodiscard]] bool looks_like_captured(std::string_view text);

}  // namespace pw
