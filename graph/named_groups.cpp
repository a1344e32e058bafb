#include "graph/named_groups.hpp"

#include <variant>

namespace pw {
namespace {

bool names_group(const Op& op) {
  const AttributeDecl* group = op.attribute("group");
  return group != nullptr && group->kind == AttributeKind::str;
}

}  // namespace

bool may_size_groups(const Graph& graph) {
  const OpTable& ops = graph.context().ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (const OpId id(i);
        graph.node_count(id) > 0 && names_group(ops[id]) && ops[id].attribute("world") != nullptr)
      return true;
  return false;
}

std::int64_t stated_ranks(const Graph& graph, NodeId node) {
  const Attribute* world = graph.attribute(node, "world");
  if (world == nullptr) return 0;
  if (const auto* dim = std::get_if<DimId>(world))
    return graph.context().dims.value(*dim).value_or(0);
  const auto* number = std::get_if<std::int64_t>(world);
  return number == nullptr ? 0 : *number;
}

std::vector<NamedGroup> named_groups(const Graph& graph) {
  std::vector<NamedGroup> out;
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n)) {
    if (!names_group(graph.op_of(n))) continue;
    const Attribute* group = graph.attribute(n, "group");
    if (group == nullptr) continue;
    if (const auto* name = std::get_if<std::string>(group))
      out.push_back({n, *name, stated_ranks(graph, n)});
  }
  return out;
}

}  // namespace pw
