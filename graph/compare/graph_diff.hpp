// The differences of two graphs whose nodes correspond: removed, added and changed inputs, nodes
// and outputs. Equal changes of repeated layers form one entry. Names, groups, sources and the
// order of nodes do not count, so an empty difference means isomorphic graphs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "graph/compare/match_graphs.hpp"

namespace pw {

enum class ChangeKind : std::uint8_t { removed, added, changed };
[[nodiscard]] std::string_view name(ChangeKind kind);

/// One difference, or several that are equal up to names and numbers in strings.
struct GraphChange {
  ChangeKind kind = ChangeKind::changed;
  std::size_t count = 1;
  std::string thing;  ///< the op, "input", "output" or "symbol"
  std::string what;   ///< "eps: 1e-05 → 1e-06; operand 0: x → y", or what was removed or added
  std::string first;  ///< the name of the first one
  std::string where;  ///< groups, of the first and the last: "layers.0.mlp … layers.31.mlp"
};

struct GraphDiff {
  std::vector<GraphChange> changes;  ///< symbols, inputs, removed, added and changed nodes, outputs
  std::size_t removed = 0, added = 0;    ///< nodes that are in only one of the graphs
  std::size_t matched = 0, changed = 0;  ///< nodes in both graphs, and how many of these differ
  std::size_t renamed_inputs = 0;        ///< inputs with another name, which is not a difference
  [[nodiscard]] bool equal() const { return changes.empty(); }
};

/// Computes the differences. `fold`: merges equal changes. The graphs must be the matched ones.
GraphDiff diff_graphs(const Graph& before, const Graph& after, const GraphMatch& match,
                      bool fold = true);

}  // namespace pw
