// In-place writes of ops. A graph's names are values and keep their contents. After `y = put(c, x)`
// of an op with `mut c` and a result `from c`, `c` keeps its old contents, and `y` is the new
// contents of its memory. The final contents of inputs are stated by the graph's writes, or derived
// from its ops.
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
  ValueId contents;  ///< its new contents: the result `from` it; invalid if no result states it
};
[[nodiscard]] std::vector<OperandWrite> writes_of(const Graph& graph, NodeId node);

inline constexpr const char* kUndeclaredWrite = "PW0335";
/// Reason why the final contents of an input cannot be determined.
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
/// Declares the implied writes after the outputs; declares nothing if there are problems.
std::vector<WriteProblem> declare_writes(Graph& graph);
/// Does the reverse: copies each input that ops write and the graph does not declare written.
void copy_undeclared_writes(Graph& graph);

/// Returns the first node that writes to a value that another node has written already, since their
/// order is not defined. Invalid if there is none.
[[nodiscard]] NodeId second_writer(const Graph& graph);

}  // namespace pw
