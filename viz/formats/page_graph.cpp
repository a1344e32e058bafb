// Writes the nodes of all versions as columns: texts by number, operands as numbers of values. A
// hundred thousand nodes take a few megabytes.
#include <algorithm>
#include <map>

#include "viz/formats/page_writer.hpp"
#include "viz/label.hpp"

namespace pw::viz {
namespace {

class GraphColumns {
 public:
  GraphColumns(PageWriter& page, ValueNumbers& references, const PageParts& parts)
      : page_(page),
        references_(references),
        in_(parts),
        graph_(parts.graph),
        links_(parts.links) {}

  void put_inputs() {
    Ints inputs, outputs;
    for (const InputFact& input : links_.inputs)
      inputs.insert(inputs.end(), {page_.text(input.name), page_.text(input.type),
                                   static_cast<std::int64_t>(input.kind)});
    for (const Link& link : links_.outputs)
      outputs.insert(outputs.end(),
                     {link.slot, references_.of(link.source, link.last), link.first, link.last});
    page_.put("inputs", inputs);
    page_.put("outputs", outputs);
  }

  void put_nodes() {
    Ints op, attributes, group, source, results, result, operands, operand, alive, changed, moved;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      tell(in_.options.progress, "writing", at, graph_.nodes.size(), "nodes");
      const UnionNode& node = graph_.nodes[at];
      const Graph& g = graph_.graph_of(node);
      op.push_back(op_text(g, node.id));
      attributes.push_back(attributes_text(g, node.id));
      group.push_back(page_.text(g.group(node.id)));
      source.push_back(page_.text(g.source(node.id)));
      results.push_back(static_cast<std::int64_t>(g.result_count(node.id)));
      for (std::size_t r = 0; r < g.result_count(node.id); ++r) {
        const ValueId v = g.result(node.id, r);
        result.insert(result.end(), {page_.text(g.value_name(v)), type_text(g, g.type(v))});
      }
      if (node.first > 0 || node.last < last_version())
        alive.insert(alive.end(), {at, node.first, node.last});
      for (const std::uint32_t v : node.changed) put_change(at, v, changed);
      std::int64_t count = 0;
      for (const Link& link : links_.of(at)) {
        const std::int64_t value = references_.of(link.source, link.last);
        if (link.last == node.last) {
          operand.push_back(value);
          ++count;
        }
        if (link.first != node.first || link.last != node.last)
          moved.insert(moved.end(), {at, link.slot, value, link.first, link.last});
      }
      operands.push_back(count);
    }
    page_.put("op", op);
    page_.put("attributes", attributes);
    page_.put("group", group);
    page_.put("source", source);
    page_.put("results", results);
    page_.put("result", result);
    page_.put("operands", operands);
    page_.put("operand", operand);
    page_.put("alive", alive);
    page_.put("changed", changed);
    page_.put("moved", moved);
    page_.put("opKinds", op_kinds_);
  }

 private:
  [[nodiscard]] std::uint32_t last_version() const {
    return static_cast<std::uint32_t>(graph_.versions.size() - 1);
  }

  /// Lists, for each changed node, the version, and its previous op and attributes.
  void put_change(std::uint32_t at, std::uint32_t version, Ints& out) {
    const Graph& g = graph_.versions[version - 1]->graph;
    NodeId n = graph_.nodes[at].id;
    if (!in_.input.related) {
      const auto& index = graph_.index[version - 1];
      const auto found = std::find(index.begin(), index.end(), at);
      n = NodeId(static_cast<std::uint32_t>(found - index.begin()));
    }
    out.insert(out.end(), {at, version, op_text(g, n), attributes_text(g, n)});
  }

  std::int64_t op_text(const Graph& g, NodeId n) {
    const auto [known, fresh] = ops_.try_emplace(g.op(n).index, 0);
    if (!fresh) return known->second;
    const Op& op = g.op_of(n);
    known->second = page_.text(op.name);
    const std::int64_t kind = op.traits.splitting ? 2 : op.has_body() || op.traits.view ? 0 : 1;
    op_kinds_.insert(op_kinds_.end(), {known->second, kind});
    return known->second;
  }

  std::int64_t attributes_text(const Graph& g, NodeId n) {
    const auto [known, fresh] = attributes_.try_emplace(g.attributes(n).index, 0);
    if (fresh) known->second = page_.text(g.context().attributes.print(g.attributes(n)));
    return known->second;
  }

  std::int64_t type_text(const Graph& g, TypeId id) {
    const auto [known, fresh] = types_.try_emplace(id.index, 0);
    if (fresh) known->second = page_.text(g.context().types.print(id));
    return known->second;
  }

  PageWriter& page_;
  ValueNumbers& references_;
  const PageParts& in_;
  const UnionGraph& graph_;
  const Links& links_;
  std::map<std::uint32_t, std::int64_t> ops_, attributes_, types_;
  Ints op_kinds_;
};

}  // namespace

void put_graph(PageWriter& page, ValueNumbers& references, const PageParts& parts) {
  GraphColumns columns(page, references, parts);
  columns.put_inputs();
  columns.put_nodes();
}

}  // namespace pw::viz
