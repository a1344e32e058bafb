#include "viz/links.hpp"

#include <algorithm>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

class Linker {
 public:
  Linker(const UnionGraph& graph, bool related) : graph_(graph), related_(related) {}

  Links run(const StageProgress& progress) {
    find_inputs();
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      tell(progress, "linking", at, graph_.nodes.size(), "nodes");
      out_.begin.push_back(static_cast<std::uint32_t>(out_.all.size()));
      link_node(at);
    }
    out_.begin.push_back(static_cast<std::uint32_t>(out_.all.size()));
    link_outputs();
    return std::move(out_);
  }

 private:
  void find_inputs() {
    out_.input_number.resize(graph_.versions.size());
    // From the last version backwards, so that the latest version describes an input.
    for (std::size_t v = graph_.versions.size(); v-- > 0;) {
      const Graph& graph = graph_.versions[v]->graph;
      out_.input_number[v].resize(graph.value_bound(), kNobody);
      for (const ValueId id : graph.inputs()) {
        std::uint32_t& number = out_.input_number[v][id.index];
        number = number_after(v, id);
        if (number != kNobody) continue;
        number = static_cast<std::uint32_t>(out_.inputs.size());
        out_.inputs.push_back({clean(graph.value_name(id)),
                               clean(graph.context().types.print(graph.type(id))),
                               graph.input_kind(id)});
      }
    }
  }

  /// Returns the entry of the same input in the next version.
  std::uint32_t number_after(std::size_t v, ValueId input) const {
    if (v + 1 == graph_.versions.size()) return kNobody;
    const ValueId after = related_ ? input : graph_.value_after[v][input.index];
    const auto& numbers = out_.input_number[v + 1];
    return after.index < numbers.size() ? numbers[after.index] : kNobody;
  }

  Source source_of(std::uint32_t version, ValueId v) const {
    if (!v.valid()) return {};
    const Graph& graph = graph_.versions[version]->graph;
    if (graph.is_input(v)) return {Source::Kind::input, out_.input_number[version][v.index], 0, v};
    const NodeId producer = graph.producer(v);
    const std::uint32_t at = graph_.position(version, producer);
    if (at == kNobody) return {Source::Kind::literal, graph.attributes(producer).index, 0, v};
    return {Source::Kind::node, at, static_cast<std::uint32_t>(graph.result_index(v)), v};
  }

  void link_node(std::uint32_t at) {
    const UnionNode& node = graph_.nodes[at];
    if (related_ || node.first == node.last) return link_related(at);
    if (id_of_.empty()) invert_index();
    std::vector<Link> open;
    for (std::uint32_t v = node.first; v <= node.last; ++v)
      if (id_of_[v][at].valid()) note(v, id_of_[v][at], open);
    close(open);
  }

  /// Ids are never reused, so that equal operands are equal values.
  void link_related(std::uint32_t at) {
    const UnionNode& node = graph_.nodes[at];
    std::vector<Link> open;
    for (std::uint32_t v = node.first; v <= node.last; ++v) {
      const Graph& graph = graph_.versions[v]->graph;
      const bool same =
          v > node.first && same_operands(graph, graph_.versions[v - 1]->graph, node.id);
      if (same)
        for (Link& link : open) link.last = link.last + 1 == v ? v : link.last;
      else
        note(v, node.id, open);
    }
    close(open);
  }

  static bool same_operands(const Graph& a, const Graph& b, NodeId n) {
    const std::size_t count = a.operand_count(n);
    if (count != b.operand_count(n)) return false;
    for (std::size_t i = 0; i < count; ++i)
      if (a.operand(n, i) != b.operand(n, i)) return false;
    return true;
  }

  /// Finds the node of each version, by union position.
  void invert_index() {
    id_of_.resize(graph_.versions.size());
    for (std::size_t v = 0; v < graph_.versions.size(); ++v) {
      id_of_[v].resize(graph_.nodes.size());
      for (std::uint32_t id = 0; id < graph_.index[v].size(); ++id)
        if (graph_.index[v][id] != kNobody) id_of_[v][graph_.index[v][id]] = NodeId(id);
    }
  }

  void note(std::uint32_t version, NodeId n, std::vector<Link>& open) const {
    const Graph& graph = graph_.versions[version]->graph;
    for (std::uint32_t i = 0; i < graph.operand_count(n); ++i) {
      const Source source = source_of(version, graph.operand(n, i));
      const auto known = std::find_if(open.begin(), open.end(), [&](const Link& link) {
        return link.slot == i && link.last + 1 == version && link.source == source;
      });
      if (known != open.end()) {
        known->last = version;
        known->source.value = source.value;  // ids may differ from version to version
      } else {
        open.push_back({source, i, version, version});
      }
    }
  }

  void close(std::vector<Link>& open) {
    std::stable_sort(open.begin(), open.end(), [](const Link& a, const Link& b) {
      return a.slot != b.slot ? a.slot < b.slot : a.first < b.first;
    });
    out_.all.insert(out_.all.end(), open.begin(), open.end());
  }

  void link_outputs() {
    for (std::uint32_t version = 0; version < graph_.versions.size(); ++version) {
      const Graph& graph = graph_.versions[version]->graph;
      for (std::uint32_t i = 0; i < graph.outputs().size(); ++i) {
        const Source source = source_of(version, graph.outputs()[i]);
        const auto known =
            std::find_if(out_.outputs.begin(), out_.outputs.end(), [&](const Link& link) {
              return link.slot == i && link.last + 1 == version && link.source == source;
            });
        if (known != out_.outputs.end()) {
          known->last = version;
          known->source.value = source.value;
        } else {
          out_.outputs.push_back({source, i, version, version});
        }
      }
    }
  }

  const UnionGraph& graph_;
  bool related_;
  std::vector<std::vector<NodeId>> id_of_;  // [version][union position]
  Links out_;
};

}  // namespace

Links link(const UnionGraph& graph, bool related, const StageProgress& progress) {
  return Linker(graph, related).run(progress);
}

}  // namespace pw::viz
