#include "graph/passes/view.hpp"

namespace pw {
namespace {

/// Returns true for the body `{ y = x }`.
bool is_identity(const Op& op) {
  if (op.body.size() != 1 || op.results.size() != 1) return false;
  const Statement& only = op.body.front();
  return only.binders.size() == 1 && only.binders[0].name == op.results[0].name &&
         only.value.kind == Expr::Kind::path && op.operand_index(only.value.text) == 0;
}

}  // namespace

bool keeps_bytes(const Graph& graph, NodeId node) {
  const Op& op = graph.op_of(node);
  if (!op.traits.view || graph.operand_count(node) != 1) return false;
  if (op.primitive == Primitive::reshape) return true;
  if (op.has_body() && !is_identity(op)) return false;
  return graph.attributes(node) == Attributes::empty() &&
         graph.type(graph.operand(node, 0)) == graph.type(graph.result(node));
}

}  // namespace pw
