// Exports fold: groups from pieces, layer names or splitting ops, then equal groups by their
// canonical form.
#include "viz/fold.hpp"

#include <algorithm>
#include <cctype>
#include <map>

namespace pw::viz {
namespace {

/// "layers.3" of "layers.3.mlp": up to the first component that is a number; empty if there is
/// none.
std::string layer_of(std::string_view group) {
  std::size_t begin = 0;
  while (begin <= group.size()) {
    std::size_t end = std::min(group.find('.', begin), group.size());
    const std::string_view part = group.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
      return std::isdigit(c) != 0;
    });
    if (number) return std::string(group.substr(0, end));
    begin = end + 1;
  }
  return {};
}

class Grouper {
 public:
  Grouper(const UnionGraph& graph, const VizInput& input, Folding& out)
      : graph_(graph), input_(input), out_(out) {
    out_.group_of.assign(graph.nodes.size(), kNobody);
  }

  bool by_pieces() {
    if (input_.pieces == nullptr) return false;
    const std::size_t last = graph_.versions.size() - 1;
    if (graph_.versions[last] != &input_.versions.back()) return by_old_pieces();
    for (const Piece& piece : input_.pieces->pieces) {
      const auto id =
          start(piece.name, piece.capturable() ? GroupKind::captured : GroupKind::eager);
      for (const NodeId n : piece.nodes) put(graph_.position(last, n), id);
    }
    adopt();
    out_.reason = "pieces";
    return true;
  }

  bool by_layers() {
    std::map<std::string, std::uint32_t> ids;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      const UnionNode& node = graph_.nodes[at];
      const std::string layer = layer_of(graph_.graph_of(node).group(node.id));
      if (layer.empty()) continue;
      const auto known = ids.find(layer);
      put(at, known != ids.end() ? known->second : (ids[layer] = start(layer, GroupKind::layer)));
    }
    if (ids.empty()) return false;
    fill_layers();
    out_.reason = "layers";
    return true;
  }

  bool by_splitting_ops() {
    std::uint32_t current = kNobody;
    bool cut = false, any = false;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      const UnionNode& node = graph_.nodes[at];
      const bool splits = graph_.graph_of(node).op_of(node.id).traits.splitting;
      any = any || splits;
      if (current == kNobody || splits != cut)
        current = start("run_" + std::to_string(out_.groups.size()),
                        splits ? GroupKind::eager : GroupKind::run);
      cut = splits;
      put(at, current);
    }
    if (!any) return forget();
    out_.reason = "runs between splitting ops";
    return true;
  }

 private:
  /// The pieces are of a version that is not drawn, but ids are never reused: what survived is
  /// still known.
  bool by_old_pieces() {
    if (!input_.related) return false;
    const std::size_t last = graph_.versions.size() - 1;
    bool any = false;
    for (const Piece& piece : input_.pieces->pieces) {
      const auto id =
          start(piece.name, piece.capturable() ? GroupKind::captured : GroupKind::eager);
      for (const NodeId n : piece.nodes) {
        const std::uint32_t at = graph_.position(last, n);
        any = any || at != kNobody;
        put(at, id);
      }
    }
    if (!any) return forget();
    adopt();
    out_.reason = "pieces";
    return true;
  }

  /// A node without a layer between two of one layer belongs to it.
  void fill_layers() {
    std::uint32_t before = kNobody;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      if (out_.group_of[at] != kNobody) {
        before = at;
        continue;
      }
      std::uint32_t after = at;
      while (after < graph_.nodes.size() && out_.group_of[after] == kNobody) ++after;
      const bool same = before != kNobody && after < graph_.nodes.size() &&
                        out_.group_of[before] == out_.group_of[after];
      for (; at < after; ++at)
        if (same) out_.group_of[at] = out_.group_of[before];
      --at;
    }
    gather();
  }

  void gather() {
    for (Group& group : out_.groups) group.nodes.clear();
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at)
      if (out_.group_of[at] != kNobody) out_.groups[out_.group_of[at]].nodes.push_back(at);
  }

  bool forget() {
    out_.groups.clear();
    out_.group_of.assign(graph_.nodes.size(), kNobody);
    return false;
  }

  std::uint32_t start(std::string name, GroupKind kind) {
    out_.groups.push_back({std::move(name), kind, {}, kNobody, {}});
    return static_cast<std::uint32_t>(out_.groups.size() - 1);
  }

  void put(std::uint32_t at, std::uint32_t group) {
    if (at == kNobody || out_.group_of[at] != kNobody) return;
    out_.group_of[at] = group;
    out_.groups[group].nodes.push_back(at);
  }

  /// Nodes that the pieces do not know were rewritten away: they stand with what follows them, if
  /// that is captured.
  void adopt() {
    std::uint32_t next = kNobody;
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      std::uint32_t& group = out_.group_of[i];
      if (group == kNobody)
        group = next;
      else if (out_.groups[group].kind == GroupKind::captured)
        next = group;
    }
    std::uint32_t previous = kNobody;
    for (std::uint32_t& group : out_.group_of) {
      if (group == kNobody) group = previous;
      previous = group;
    }
    gather();
  }

  const UnionGraph& graph_;
  const VizInput& input_;
  Folding& out_;
};

/// What is left of a group when layer names, weights, names of values and what is outside are
/// abstracted.
class Former {
 public:
  Former(const UnionGraph& graph, const Links& links)
      : graph_(graph), links_(links), place_(graph.nodes.size(), kNobody) {}

  std::vector<std::uint32_t> form(const Group& group) {
    std::vector<std::uint32_t> out{static_cast<std::uint32_t>(group.kind)};
    std::map<std::string, std::uint32_t> layers;
    for (std::uint32_t i = 0; i < group.nodes.size(); ++i) place_[group.nodes[i]] = i;
    for (const std::uint32_t at : group.nodes) {
      const UnionNode& node = graph_.nodes[at];
      const Graph& g = graph_.graph_of(node);
      out.insert(out.end(), {g.op(node.id).index, node.first, node.last,
                             static_cast<std::uint32_t>(node.changed.size())});
      out.insert(out.end(), node.changed.begin(), node.changed.end());
      out.push_back(attributes(g, node.id, layers));
      out.push_back(static_cast<std::uint32_t>(g.result_count(node.id)));
      for (std::size_t r = 0; r < g.result_count(node.id); ++r)
        out.push_back(g.type(g.result(node.id, r)).index);
      for (const Link& link : links_.of(at)) source(link, out);
    }
    for (const std::uint32_t at : group.nodes) place_[at] = kNobody;
    return out;
  }

 private:
  void source(const Link& link, std::vector<std::uint32_t>& out) const {
    const Source& from = link.source;
    out.insert(out.end(), {link.slot, link.first, link.last});
    if (from.kind == Source::Kind::none) return out.push_back(kAbsent);
    if (from.kind == Source::Kind::literal) {
      out.insert(out.end(), {kLiteral, from.index});
      return;
    }
    if (from.kind == Source::Kind::node && place_[from.index] != kNobody) {
      out.insert(out.end(), {kInside, place_[from.index], from.result});
      return;
    }
    out.push_back(graph_.versions[link.last]->graph.type(from.value).index);
    if (!links_.drawn(from)) {
      out.insert(out.end(), {kWeight, static_cast<std::uint32_t>(links_.inputs[from.index].kind)});
      return;
    }
    out.push_back(kOutside);
  }

  static std::uint32_t attributes(const Graph& g, NodeId n,
                                  std::map<std::string, std::uint32_t>& layers) {
    Context& context = g.context();
    AttributeList list = context.attributes[g.attributes(n)];
    bool changed = false;
    for (auto& [name, value] : list) {
      const std::string_view text = context.strings.text(name);
      const auto* layer = std::get_if<std::string>(&value);
      if (layer == nullptr || (text != "layer" && text != "layer_name")) continue;
      const auto number = layers.emplace(*layer, layers.size()).first->second;
      value = static_cast<std::int64_t>(number);
      changed = true;
    }
    return (changed ? context.attributes.intern(std::move(list)) : g.attributes(n)).index;
  }

  enum Where : std::uint32_t { kAbsent, kLiteral, kInside, kWeight, kOutside };

  const UnionGraph& graph_;
  const Links& links_;
  std::vector<std::uint32_t> place_;
};

void fold_equal(const UnionGraph& graph, const Links& links, Folding& folding) {
  Former former(graph, links);
  std::map<std::vector<std::uint32_t>, std::uint32_t> seen;
  for (std::uint32_t i = 0; i < folding.groups.size(); ++i) {
    Group& group = folding.groups[i];
    if (group.nodes.empty()) continue;
    const std::uint32_t first = seen.try_emplace(former.form(group), i).first->second;
    group.same_as = first;
    folding.groups[first].copies.push_back(i);
    for (std::size_t k = 0; k < group.nodes.size(); ++k)
      folding.drawn_as[group.nodes[k]] = folding.groups[first].nodes[k];
  }
}

void fold_nothing(Folding& folding) {
  for (std::uint32_t i = 0; i < folding.groups.size(); ++i) {
    folding.groups[i].same_as = i;
    folding.groups[i].copies = {i};
  }
}

}  // namespace

Folding fold(const UnionGraph& graph, const Links& links, const VizInput& input,
             Collapse collapse) {
  Folding out;
  Grouper grouper(graph, input, out);
  const bool wanted_pieces = collapse != Collapse::layers;
  if (!(wanted_pieces && grouper.by_pieces()) && collapse != Collapse::pieces) {
    if (!grouper.by_layers()) grouper.by_splitting_ops();
  }
  out.drawn_as.resize(graph.nodes.size());
  for (std::uint32_t at = 0; at < out.drawn_as.size(); ++at) out.drawn_as[at] = at;
  if (collapse == Collapse::none)
    fold_nothing(out);
  else
    fold_equal(graph, links, out);
  return out;
}

}  // namespace pw::viz
