#include "graph/passes/constancy.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace pw {

bool has_fixed_sizes(const Dims& dims, const Attribute& attribute) {
  const auto fixed = [&](DimId dim) { return dims.value(dim).has_value(); };
  if (const auto* dim = std::get_if<DimId>(&attribute)) return fixed(*dim);
  const auto* list = std::get_if<std::vector<DimId>>(&attribute);
  return list == nullptr || std::all_of(list->begin(), list->end(), fixed);
}

bool reads_a_symbol(const Graph& graph, NodeId node) {
  for (const AttributeDecl& decl : graph.op_of(node).attributes) {
    const Attribute* attribute = graph.attribute(node, decl.name);
    if (attribute != nullptr && !has_fixed_sizes(graph.context().dims, *attribute)) return true;
  }
  return false;
}

bool has_fixed_type(const Graph& graph, ValueId value) {
  const TypeId type = graph.type(value);
  if (type == Types::unknown()) return false;
  const Shape& shape = graph.context().types[type].shape;
  return std::all_of(shape.begin(), shape.end(),
                     [&](DimId dim) { return graph.context().dims.value(dim).has_value(); });
}

Truth is_weight(const Graph& graph, ValueId value, std::string* why) {
  if (graph.is_input(value) && graph.input_kind(value) == InputKind::weight) return Truth::yes;
  if (why != nullptr)
    *why = fmt::format("%{} is {}", graph.value_name(value),
                       graph.is_input(value) ? "not declared to be a weight" : "computed");
  return Truth::no;
}

Truth is_constant(const Graph& graph, ValueId value, std::string* why) {
  const auto decide = [&](ValueId v, Truth truth, std::string_view what) {
    if (why != nullptr) *why = fmt::format("%{} {}", graph.value_name(v), what);
    return truth;
  };
  std::vector<ValueId> open{value};
  std::set<ValueId> seen;
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!v.valid() || !seen.insert(v).second) continue;
    if (graph.is_input(v)) {
      if (graph.input_kind(v) == InputKind::weight) continue;
      return decide(v, Truth::no, "is not declared to be a weight");
    }
    const NodeId node = graph.producer(v);
    const Op& op = graph.op_of(node);
    if (op.imported || op.traits.effect) return decide(v, Truth::unknown, "may change");
    if (reads_a_symbol(graph, node)) return decide(v, Truth::no, "depends on a size of the step");
    for (ValueId operand : graph.operands(node)) open.push_back(operand);
  }
  return Truth::yes;
}

}  // namespace pw
