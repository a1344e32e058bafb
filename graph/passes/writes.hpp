// In-place writes of ops. A graph's names are values and keep their contents: after `y = put(c, x)`
// of an op with `mut c` and a result `from c`, `c` is what it was, and `y` is what its memory holds
// then. What inputs hold at the end is stated by the graph's writes, or derived from its ops.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

/// A `mut` or `out` operand of a node.
struct OperandWrite {
  std::size_t operand = 0;
  ValueId written;
  ValueId contents;  ///< what it holds then: the result `from` it; invalid where no result says
};
[[nodiscard]] std::vector<OperandWrite> writes_of(const Graph& graph, NodeId node);

inline constexpr const char* kUndeclaredWrite = "PW0335";
/// Why the last contents of an input cannot be determined.
struct WriteProblem {
  NodeId node;
  std::string message, help;
};

/// Writes of inputs by ops that the graph does not state.
struct ImpliedWrites {
  std::vector<std::pair<ValueId, ValueId>> writes;  ///< input, and its last contents
  std::vector<WriteProblem> problems;
};
[[nodiscard]] ImpliedWrites implied_writes(const Graph& graph);
/// Declares them, behind the outputs; where there are problems, nothing.
std::vector<WriteProblem> declare_writes(Graph& graph);
/// The other way: an input that ops write and the graph does not declare written is copied first.
void copy_undeclared_writes(Graph& graph);

/// The first node that writes what another has written already: which of them came first is not
/// said. Invalid where there is none.
[[nodiscard]] NodeId second_writer(const Graph& graph);

}  // namespace pw
