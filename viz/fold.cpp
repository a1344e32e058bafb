// Groups nodes by pieces, layer names, or splitting ops, and folds groups with equal canonical
// forms. A canonical form is a sequence of numbers that describes a group's nodes in order,
// abstracting from layer names, weights, value names, and outside values. Its length is linear in
// the nodes and edges of the group.
#include "viz/fold.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "viz/label.hpp"
#include "viz/layered/arrange.hpp"
#include "viz/modules.hpp"

namespace pw::viz {
namespace {

/// Returns "layers.3" for "layers.3.mlp": up to the first component that is a number; empty if
/// there is none.
std::string layer_of(std::string_view group) {
  std::size_t begin = 0;
  while (begin <= group.size()) {
    std::size_t end = std::min(group.find('.', begin), group.size());
    const std::string_view part = group.substr(begin, end - begin);
    if (is_number(part)) return std::string(group.substr(0, end));
    begin = end + 1;
  }
  return {};
}

/// Cuts other versions at the same places as the last one.
class PieceCuts {
 public:
  explicit PieceCuts(const StitchedGraph& pieces) {
    for (const Piece& piece : pieces.pieces) {
      if (!piece.host_op.empty()) host_ops_.insert(piece.host_op);
      if (!piece.splitting) continue;
      for (NodeId n = piece.graph.first(); n.valid(); n = piece.graph.next(n))
        at_.insert(piece.graph.op_of(n).name);
    }
  }

  [[nodiscard]] std::optional<StitchedGraph> cut(const Graph& graph) const {
    SplitOptions options;
    options.at.assign(at_.begin(), at_.end());
    options.fold = false;
    options.has_kernel = [this](const Op& op) { return !host_ops_.contains(op.name); };
    const auto at = splitting_ops(graph.context_ptr(), nullptr, {}, options);
    if (!at) return std::nullopt;
    auto out = split(graph, *at, options);
    if (!out) return std::nullopt;
    return std::move(*out);
  }

 private:
  std::set<std::string> at_, host_ops_;
};

class Grouper {
 public:
  Grouper(const UnionGraph& graph, const VizInput& input, Folding& out)
      : graph_(graph), input_(input), out_(out) {
    out_.group_of.assign(graph.nodes.size(), kNobody);
  }

  bool by_pieces() {
    if (input_.pieces == nullptr) return false;
    const auto last = static_cast<std::uint32_t>(graph_.versions.size() - 1);
    const PieceCuts cuts(*input_.pieces);
    if (graph_.versions[last] == &input_.versions.back())
      put_pieces(last, *input_.pieces);
    else if (const auto cut = cuts.cut(graph_.versions[last]->graph))
      put_pieces(last, *cut);
    else
      return forget();
    for (std::uint32_t v = last; v-- > 0;) place_removed(v, cuts);
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
  void put_pieces(std::uint32_t version, const StitchedGraph& cut) {
    for (const Piece& piece : cut.pieces) {
      const auto id = start(piece.name, kind_of(piece));
      out_.groups[id].piece_class = piece.piece_class.index;
      for (const NodeId n : piece.nodes) put(graph_.position(version, n), id);
    }
  }

  static GroupKind kind_of(const Piece& piece) {
    return piece.capturable() ? GroupKind::captured : GroupKind::eager;
  }

  /// Nodes that a version is the last to have belong to its piece, which is drawn as the group that
  /// contains most of its surviving nodes.
  void place_removed(std::uint32_t version, const PieceCuts& cuts) {
    const auto gone = [&](std::uint32_t at) {
      return at != kNobody && graph_.nodes[at].last == version && out_.group_of[at] == kNobody;
    };
    const auto& index = graph_.index[version];
    if (std::none_of(index.begin(), index.end(), gone)) return;
    const auto cut = cuts.cut(graph_.versions[version]->graph);
    if (!cut) return;
    std::vector<std::uint32_t> group(cut->pieces.size(), kNobody);
    for (std::uint32_t p = 0; p < group.size(); ++p)
      group[p] = heir(version, cut->pieces[PieceId(p)]);
    for (std::uint32_t p = 0; p < group.size(); ++p) {
      const Piece& piece = cut->pieces[PieceId(p)];
      const bool any = std::any_of(piece.nodes.begin(), piece.nodes.end(),
                                   [&](NodeId n) { return gone(graph_.position(version, n)); });
      if (!any) continue;
      if (group[p] == kNobody) group[p] = between(group, p, kind_of(piece));
      if (group[p] == kNobody)
        group[p] =
            start(piece.name + " of " + clean(graph_.versions[version]->pass), kind_of(piece));
      for (const NodeId n : piece.nodes) put(graph_.position(version, n), group[p]);
    }
    gather();
  }

  /// Returns the group of its kind with most of its nodes; the first of several.
  [[nodiscard]] std::uint32_t heir(std::uint32_t version, const Piece& piece) const {
    std::map<std::uint32_t, std::size_t> votes;
    for (const NodeId n : piece.nodes) {
      const std::uint32_t at = graph_.position(version, n);
      if (at != kNobody && out_.group_of[at] != kNobody &&
          out_.groups[out_.group_of[at]].kind == kind_of(piece))
        ++votes[out_.group_of[at]];
    }
    std::uint32_t best = kNobody;
    for (const auto& [group, count] : votes)
      if (best == kNobody || count > votes[best]) best = group;
    return best;
  }

  /// For a piece without surviving nodes: returns the only group of its kind between those of its
  /// neighbours.
  [[nodiscard]] std::uint32_t between(const std::vector<std::uint32_t>& group, std::uint32_t piece,
                                      GroupKind kind) const {
    std::uint32_t low = 0, high = static_cast<std::uint32_t>(out_.groups.size());
    for (std::uint32_t p = piece; p-- > 0;)
      if (group[p] != kNobody) {
        low = group[p] + 1;
        break;
      }
    for (std::uint32_t p = piece + 1; p < group.size(); ++p)
      if (group[p] != kNobody) {
        high = group[p];
        break;
      }
    std::uint32_t found = kNobody;
    for (std::uint32_t g = low; g < high; ++g) {
      if (out_.groups[g].kind != kind) continue;
      if (found != kNobody) return kNobody;
      found = g;
    }
    return found;
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
    out_.groups.push_back({std::move(name), kind});
    return static_cast<std::uint32_t>(out_.groups.size() - 1);
  }

  void put(std::uint32_t at, std::uint32_t group) {
    if (at == kNobody || out_.group_of[at] != kNobody) return;
    out_.group_of[at] = group;
    out_.groups[group].nodes.push_back(at);
  }

  /// If a version cannot be cut, nodes that it is the last to have join the nodes after them, if
  /// those are captured.
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

/// Computes the canonical form of a group, without layer names, weights, value names and the
/// outside; it includes which nodes are in which inner group.
class Former {
 public:
  Former(const UnionGraph& graph, const Links& links, const Folding& folding)
      : graph_(graph), links_(links), folding_(folding), place_(graph.nodes.size(), kNobody) {}

  std::vector<std::uint32_t> form(std::uint32_t index) {
    const Group& group = folding_.groups[index];
    std::vector<std::uint32_t> out{static_cast<std::uint32_t>(group.kind), group.piece_class};
    inside_ = {{index, 0}};
    std::map<std::string, std::uint32_t> layers;
    for (std::uint32_t i = 0; i < group.nodes.size(); ++i) place_[group.nodes[i]] = i;
    for (const std::uint32_t at : group.nodes) {
      const UnionNode& node = graph_.nodes[at];
      const Graph& g = graph_.graph_of(node);
      out.push_back(inside(folding_.inner_of[at], out));
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
  /// Returns the number of an inner group; a new one also numbers its parent.
  std::uint32_t inside(std::uint32_t group, std::vector<std::uint32_t>& out) {
    const auto known = inside_.find(group);
    if (known != inside_.end()) return known->second;
    const std::uint32_t parent = inside(folding_.groups[group].parent, out);
    const auto number = static_cast<std::uint32_t>(inside_.size());
    inside_.emplace(group, number);
    out.insert(out.end(), {number, parent});
    return number;
  }

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
  const Folding& folding_;
  std::vector<std::uint32_t> place_;
  std::map<std::uint32_t, std::uint32_t> inside_;
};

void find_equal(const UnionGraph& graph, const Links& links, Folding& folding) {
  Former former(graph, links, folding);
  std::map<std::vector<std::uint32_t>, std::uint32_t> seen;
  for (std::uint32_t i = 0; i < folding.groups.size(); ++i) {
    if (folding.groups[i].nodes.empty()) continue;
    const std::uint32_t first = seen.try_emplace(former.form(i), i).first->second;
    folding.groups[i].same_as = first;
    folding.groups[first].copies.push_back(i);
  }
}

void find_none_equal(Folding& folding) {
  for (std::uint32_t i = 0; i < folding.groups.size(); ++i) {
    folding.groups[i].same_as = i;
    folding.groups[i].copies = {i};
  }
}

/// Draws the first of equal sibling groups.
void fold_siblings(const std::vector<Unit>& sequence, Folding& folding) {
  std::map<std::uint32_t, std::uint32_t> drawn;  // by the group that they are equal to
  for (const Unit& unit : sequence) {
    if (!unit.group) continue;
    Group& group = folding.groups[unit.index];
    group.drawn_as = drawn.try_emplace(group.same_as, unit.index).first->second;
    folding.groups[group.drawn_as].siblings.push_back(unit.index);
  }
}

void fold_equal(Folding& folding) {
  fold_siblings(folding.sequence, folding);
  for (const Group& group : folding.groups) fold_siblings(group.sequence, folding);
  for (std::uint32_t at = 0; at < folding.drawn_as.size(); ++at) folding.drawn_as[at] = at;
  // From the inside out: nodes of a further copy are drawn as their counterparts in the first.
  for (std::size_t i = folding.groups.size(); i-- > 0;) {
    const Group& group = folding.groups[i];
    if (group.nodes.empty() || group.drawn_as == i) continue;
    const Group& first = folding.groups[group.drawn_as];
    for (std::size_t k = 0; k < group.nodes.size(); ++k)
      folding.drawn_as[group.nodes[k]] = folding.drawn_as[first.nodes[k]];
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
  Arranger arranger(graph, links, out.groups);
  std::vector<std::uint32_t> all(graph.nodes.size());
  std::iota(all.begin(), all.end(), 0);
  out.sequence = arranger.run(all, out.group_of);
  nest_modules(graph, arranger, out);
  if (collapse == Collapse::none)
    find_none_equal(out);
  else
    find_equal(graph, links, out);
  out.drawn_as.resize(graph.nodes.size());
  fold_equal(out);
  return out;
}

}  // namespace pw::viz
