// Copies some nodes of a graph to a graph of their own, so that they can be lowered: values from
// outside become inputs, literals are copied, and values that are read outside become outputs.
// Cost: linear in the nodes and their operands; a value's users are scanned only up to the first
// one outside.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "codegen/rowprogram/row_program.hpp"
#include "codegen/rowprogram/wide_rows.hpp"
#include "graph/build.hpp"

namespace pw::rows {
namespace {

bool is_constant(const Graph& graph, NodeId n) { return graph.op_of(n).is_literal(); }

/// Returns true if a kernel reads the value from memory, without computing anything.
bool is_loaded(const Graph& graph, ValueId value) {
  if (graph.is_input(value)) return true;
  const NodeId node = graph.producer(value);
  const Primitive op = graph.op_of(node).primitive;
  const bool moves = among(op, {Primitive::reshape, Primitive::transpose, Primitive::slice,
                                Primitive::split, Primitive::expand});
  return moves && is_loaded(graph, graph.operand(node, 0));
}

/// Replaces argmax by the op whose body has primitives of rows, unless the axis may be empty: that
/// is an error, which kernels do not report. The operand must be in memory, because the body finds
/// the largest element again in a second pass, and a computed value may be rounded in one pass
/// only. Returns true if there was one.
bool search_in_rows(Graph& graph) {
  Context& context = graph.context();
  bool found = false;
  for (NodeId n : graph.order()) {
    if (graph.op_of(n).primitive != Primitive::argmax) continue;
    if (!is_loaded(graph, graph.operand(n, 0))) continue;
    const TypeId type = graph.type(graph.operand(n, 0));
    const OpId in_rows = context.ops.find("argmax_in_rows");
    if (type == Types::unknown() || !in_rows.valid()) continue;
    const Shape& shape = context.types[type].shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto* dim = std::get_if<std::int64_t>(graph.attribute(n, "dim"));
    const std::int64_t axis = dim == nullptr ? rank - 1 : *dim < 0 ? *dim + rank : *dim;
    if (axis < 0 || axis >= rank) continue;
    if (context.dims.value(shape[static_cast<std::size_t>(axis)]).value_or(0) <= 0) continue;
    graph.set_op(n, in_rows);
    found = true;
  }
  return found;
}

/// Stops at the first outside user, because a value may have very many.
bool is_read_outside(const Graph& graph, ValueId v, const std::set<NodeId>& own) {
  for (UseId u = graph.first_use(v); u.valid(); u = graph.next_use(u))
    if (!own.contains(graph.user(u))) return true;
  return false;
}

}  // namespace

Graph isolate(const Graph& graph, std::span<const NodeId> nodes, std::vector<ValueId>& inputs,
              std::vector<ValueId>& outputs) {
  Graph alone(graph.context_ptr(), "");
  alone.facts = graph.facts;
  std::map<ValueId, ValueId> copies;
  const std::set<NodeId> own(nodes.begin(), nodes.end());
  inputs.clear();
  outputs.clear();
  const auto literal = [&](ValueId v) {
    const NodeId source = graph.producer(v);
    NodeSpec spec;
    spec.op = graph.op(source);
    spec.attributes = graph.attributes(source);
    spec.results = {{graph.type(v), ""}};
    return alone.result(alone.add_node(spec));
  };
  const auto operand = [&](ValueId v) -> ValueId {
    if (!v.valid()) return v;
    if (const auto known = copies.find(v); known != copies.end()) return known->second;
    ValueId copy;
    if (!graph.is_input(v) && is_constant(graph, graph.producer(v))) {
      copy = literal(v);
    } else {
      copy = alone.add_input(fmt::format("x{}", inputs.size()), graph.type(v), InputKind::input);
      inputs.push_back(v);
    }
    copies.emplace(v, copy);
    return copy;
  };
  for (NodeId n : nodes) {
    alone.name += (alone.name.empty() ? "" : " + ") + graph.op_of(n).name;
    NodeSpec spec;
    spec.op = graph.op(n);
    spec.attributes = graph.attributes(n);
    for (ValueId v : graph.operands(n)) spec.operands.push_back(operand(v));
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      spec.results.push_back({graph.type(graph.result(n, i)), ""});
    const NodeId copy = alone.add_node(spec);
    for (std::size_t i = 0; i < graph.result_count(n); ++i)
      copies[graph.result(n, i)] = alone.result(copy, i);
  }
  for (NodeId n : nodes) {
    for (std::size_t i = 0; i < graph.result_count(n); ++i) {
      const ValueId v = graph.result(n, i);
      if (!graph.is_output(v) && nodes.size() != 1 && !is_read_outside(graph, v, own)) continue;
      outputs.push_back(v);
      alone.add_output(copies.at(v));
    }
  }
  return alone;
}

namespace {

/// Returns the nodes as a graph of primitives.
tl::expected<Graph, Opaque> primitives_of(const Graph& graph, std::span<const NodeId> nodes,
                                          std::vector<ValueId>& inputs,
                                          std::vector<ValueId>& outputs) {
  Graph alone = isolate(graph, nodes, inputs, outputs);
  auto inlined = inline_bodies(alone);
  if (inlined && search_in_rows(alone)) inlined = inline_bodies(alone);
  if (!inlined) {
    return tl::unexpected<Opaque>(
        Opaque{"its body does not apply: " + inlined.error().front().message});
  }
  alone.erase_dead();
  return alone;
}

}  // namespace

tl::expected<RowProgram, Opaque> lower_nodes(const Graph& graph, std::span<const NodeId> nodes,
                                             std::vector<ValueId>& inputs,
                                             std::vector<ValueId>& outputs, bool checks) {
  const auto alone = primitives_of(graph, nodes, inputs, outputs);
  if (!alone) return tl::unexpected(alone.error());
  return lower(*alone, checks);
}

std::optional<RowProgram> lower_with_wide_rows(const Graph& graph, std::span<const NodeId> nodes,
                                               bool checks) {
  std::vector<ValueId> inputs, outputs;
  auto alone = primitives_of(graph, nodes, inputs, outputs);
  if (!alone || !join_narrow_rows(*alone)) return {};
  auto program = lower(*alone, checks);
  if (!program || divides_in_loops(*program)) return {};
  return std::move(*program);
}

tl::expected<RowProgram, Opaque> lower_node(const Graph& graph, NodeId node) {
  std::vector<ValueId> inputs, outputs;
  return lower_nodes(graph, std::span(&node, 1), inputs, outputs);
}

}  // namespace pw::rows
