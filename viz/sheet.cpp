// Exports place.
#include "viz/sheet.hpp"

#include <algorithm>
#include <map>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

// The page writes with a fixed-width font of 11 pixels, so that widths are known here.
constexpr double kWide = 2400;  // a rank of more pixels is folded
constexpr double kPageCharacter = 6.63, kPageLine = 14, kPagePadWide = 16, kPagePadHigh = 9;

struct Size {
  std::size_t characters = 0, lines = 0;
  [[nodiscard]] LayeredNode node() const {
    return {static_cast<double>(std::min(characters, kLineWidth)) * kPageCharacter + kPagePadWide,
            static_cast<double>(lines) * kPageLine + kPagePadHigh};
  }
  void line(std::size_t width) {
    characters = std::max(characters, width);
    ++lines;
  }
};

/// Sizes of boxes, without making their texts.
class Ruler {
 public:
  Ruler(const UnionGraph& graph, const Links& links) : graph_(graph), links_(links) {}

  Size measure(std::uint32_t at) {
    const UnionNode& node = graph_.nodes[at];
    const Graph& g = graph_.graph_of(node);
    Size size;
    size.line(width_of(g.op_of(node.id).name) + 2);
    if (const std::size_t width = attributes(g, node.id); width > 0) size.line(width);
    for (std::size_t r = 0; r < g.result_count(node.id); ++r) {
      const ValueId v = g.result(node.id, r);
      size.line(width_of(g.value_name(v)) + 2 + type(g, g.type(v)));
    }
    for (const Link& link : links_.of(at)) {
      if (link.last != node.last || links_.drawn(link.source)) continue;
      if (link.source.kind == Source::Kind::literal)
        size.line(2 + width_of(operand_text(graph_.versions[link.last]->graph, link.source.value)));
      else if (link.source.kind == Source::Kind::input)
        size.line(4 + width_of(links_.inputs[link.source.index].name) +
                  width_of(links_.inputs[link.source.index].type));
    }
    return size;
  }

 private:
  std::size_t attributes(const Graph& g, NodeId n) {
    const auto [known, fresh] = attributes_.try_emplace(g.attributes(n).index, 0);
    if (fresh) known->second = width_of(g.context().attributes.print(g.attributes(n)));
    return known->second;
  }
  std::size_t type(const Graph& g, TypeId id) {
    const auto [known, fresh] = types_.try_emplace(id.index, 0);
    if (fresh) known->second = width_of(g.context().types.print(id));
    return known->second;
  }

  const UnionGraph& graph_;
  const Links& links_;
  std::map<std::uint32_t, std::size_t> attributes_, types_;
};

void lay_out(Sheet& sheet) {
  std::vector<LayeredEdge> edges;
  for (const SheetEdge& edge : sheet.edges) edges.push_back({edge.from, edge.to});
  sheet.layout = lay_out_layers(sheet.nodes, edges, {.wide = kWide});
}

using Life = std::pair<std::uint32_t, std::uint32_t>;  // versions, inclusive

/// In order, and those that touch as one.
std::vector<Life> joined(std::vector<Life> lives) {
  std::sort(lives.begin(), lives.end());
  std::vector<Life> out;
  for (const Life& life : lives)
    if (!out.empty() && life.first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, life.second);
    else
      out.push_back(life);
  return out;
}

class Placer {
 public:
  Placer(const UnionGraph& graph, const Links& links, const Folding& folding,
         const StageProgress& progress)
      : graph_(graph),
        links_(links),
        folding_(folding),
        progress_(progress),
        ruler_(graph, links) {}

  Placement run() {
    find_places();
    for (std::uint32_t i = 0; i < folding_.groups.size(); ++i) {
      const Group& group = folding_.groups[i];
      out_.shape_of.push_back(kNobody);
      if (group.nodes.empty()) continue;
      if (group.same_as == i) {
        out_.shape_of[i] = static_cast<std::uint32_t>(out_.shapes.size());
        add_shape(i);
      } else {
        out_.shape_of[i] = out_.shape_of[group.same_as];
        folds_ = true;
      }
    }
    out_.folded = top(true, false);
    out_.opened = top(true, true);
    if (folds_) out_.unfolded = top(false, false);
    return std::move(out_);
  }

 private:
  void find_places() {
    place_.assign(graph_.nodes.size(), kNobody);
    leaves_.resize(graph_.nodes.size());
    for (const Group& group : folding_.groups)
      for (std::uint32_t k = 0; k < group.nodes.size(); ++k) place_[group.nodes[k]] = k;
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at)
      for (const Link& link : links_.of(at))
        if (link.source.kind == Source::Kind::node &&
            folding_.group_of[link.source.index] != folding_.group_of[at])
          leaves_[link.source.index].emplace_back(link.first, link.last);
    for (const Link& link : links_.outputs)
      if (link.source.kind == Source::Kind::node)
        leaves_[link.source.index].emplace_back(link.first, link.last);
  }

  void add_shape(std::uint32_t i) {
    const Group& group = folding_.groups[i];
    Shape shape;
    shape.group = i;
    Sheet& sheet = shape.sheet;
    std::vector<std::vector<Life>> leaving;  // by leaf: when it is read outside
    for (std::uint32_t k = 0; k < group.nodes.size(); ++k) {
      // As wide as the widest of the copies, whose names differ.
      Size size;
      std::vector<Life> lives;
      for (const std::uint32_t copy : group.copies) {
        const std::uint32_t at = folding_.groups[copy].nodes[k];
        const Size one = ruler_.measure(at);
        size.characters = std::max(size.characters, one.characters);
        size.lines = std::max(size.lines, one.lines);
        lives.insert(lives.end(), leaves_[at].begin(), leaves_[at].end());
      }
      sheet.nodes.push_back(size.node());
      if (lives.empty()) continue;
      shape.leaves.push_back(k);
      leaving.push_back(joined(std::move(lives)));
    }
    add_ports(group, shape, leaving);
    out_.shapes.push_back(std::move(shape));
  }

  void add_ports(const Group& group, Shape& shape, const std::vector<std::vector<Life>>& leaving) {
    Sheet& sheet = shape.sheet;
    const auto count = static_cast<std::uint32_t>(sheet.nodes.size());
    using Outside = std::pair<bool, std::uint32_t>;
    std::map<std::vector<Outside>, std::uint32_t> sources;  // by what they are in each copy
    std::vector<SheetEdge> edges;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::span<const Link> links = links_.of(group.nodes[k]);
      for (std::size_t l = 0; l < links.size(); ++l) {
        const Link& link = links[l];
        if (!links_.drawn(link.source)) continue;
        const bool node = link.source.kind == Source::Kind::node;
        if (node && folding_.group_of[link.source.index] == folding_.group_of[group.nodes[k]]) {
          edges.push_back({place_[link.source.index], k, link.first, link.last});
          continue;
        }
        std::vector<Outside> all;
        for (const std::uint32_t copy : group.copies) {
          const Source& source = links_.of(folding_.groups[copy].nodes[k])[l].source;
          all.emplace_back(source.kind == Source::Kind::node, source.index);
        }
        const auto number = static_cast<std::uint32_t>(sources.size());
        shape.ports.push_back(sources.try_emplace(std::move(all), number).first->second);
        edges.push_back({count + shape.ports.back(), k, link.first, link.last});
      }
    }
    shape.sources = static_cast<std::uint32_t>(sources.size());
    for (std::uint32_t p = 0; p < shape.leaves.size(); ++p)
      for (const Life& life : leaving[p])
        edges.push_back({shape.leaves[p], count + shape.sources + p, life.first, life.second});
    merge(edges);
    for (std::uint32_t p = 0; p < shape.sources; ++p)
      sheet.nodes.push_back({4, 0, LayeredNode::Pin::top});
    for (std::size_t p = 0; p < shape.leaves.size(); ++p)
      sheet.nodes.push_back({4, 0, LayeredNode::Pin::bottom});
    sheet.edges = std::move(edges);
    lay_out_shape(sheet, count, shape.sources);
  }

  /// One edge for one pair of ends in touching versions.
  static void merge(std::vector<SheetEdge>& edges) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Life>> lives;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
    for (const SheetEdge& edge : edges) {
      const auto [known, fresh] = lives.try_emplace({edge.from, edge.to});
      if (fresh) order.emplace_back(edge.from, edge.to);
      known->second.emplace_back(edge.first, edge.last);
    }
    edges.clear();
    for (const auto& ends : order)
      for (const Life& life : joined(std::move(lives[ends])))
        edges.push_back({ends.first, ends.second, life.first, life.second});
  }

  /// For the layout, ports on top stand before the nodes, so that every edge goes forwards.
  static void lay_out_shape(Sheet& sheet, std::uint32_t count, std::uint32_t sources) {
    const auto forth = [&](std::uint32_t i) {
      if (i < count) return i + sources;
      return i < count + sources ? i - count : i;
    };
    std::vector<LayeredNode> nodes(sheet.nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i) nodes[forth(i)] = sheet.nodes[i];
    std::vector<LayeredEdge> edges;
    for (const SheetEdge& edge : sheet.edges) edges.push_back({forth(edge.from), forth(edge.to)});
    Layered laid = lay_out_layers(nodes, edges, {.wide = kWide});
    sheet.layout = laid;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      sheet.layout.x[i] = laid.x[forth(i)];
      sheet.layout.y[i] = laid.y[forth(i)];
      sheet.layout.rank[i] = laid.rank[forth(i)];
    }
  }

  // ---- the whole

  /// Items in the order of the folding, so that edges go forwards but for those to a further copy
  /// of what is drawn once.
  Top top(bool folded, bool opened) {
    Top out;
    std::vector<std::uint32_t> item_of_group(folding_.groups.size(), kNobody);
    std::vector<std::uint32_t> item_of_input(links_.inputs.size(), kNobody);
    std::vector<std::uint32_t> item_of_node(graph_.nodes.size(), kNobody);
    for (std::uint32_t i = 0; i < links_.inputs.size(); ++i) {
      if (links_.inputs[i].kind != InputKind::input) continue;
      Size size;
      size.line(width_of(links_.inputs[i].name) + 2);
      size.line(width_of(links_.inputs[i].type));
      item_of_input[i] = push(out, {Item::Kind::input, i}, size.node());
    }
    for (const Unit& unit : folding_.sequence) {
      if (!unit.group) {
        item_of_node[unit.index] =
            push(out, {Item::Kind::node, unit.index}, ruler_.measure(unit.index).node());
        continue;
      }
      const std::uint32_t group = folded ? folding_.groups[unit.index].same_as : unit.index;
      if (item_of_group[group] == kNobody)
        item_of_group[group] = push(out, {Item::Kind::group, group},
                                    opened ? open_size(group) : group_size(group).node());
      for (const std::uint32_t at : folding_.groups[unit.index].nodes)
        item_of_node[at] = item_of_group[group];
    }
    std::vector<SheetEdge> edges;
    const auto from_item = [&](const Source& source) {
      return source.kind == Source::Kind::node ? item_of_node[source.index]
                                               : item_of_input[source.index];
    };
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      tell(progress_, "laying out", laid_out_++, (folds_ ? 3 : 2) * graph_.nodes.size(), "nodes");
      for (const Link& link : links_.of(at)) {
        if (!links_.drawn(link.source)) continue;
        const std::uint32_t from = from_item(link.source);
        if (from < item_of_node[at])
          edges.push_back({from, item_of_node[at], link.first, link.last});
      }
    }
    std::map<std::uint32_t, std::uint32_t> outputs;
    for (const Link& link : links_.outputs) {
      if (!links_.drawn(link.source)) continue;
      auto known = outputs.find(link.slot);
      if (known == outputs.end())
        known = outputs
                    .emplace(link.slot,
                             push(out, {Item::Kind::output, link.slot}, output_size(link).node()))
                    .first;
      edges.push_back({from_item(link.source), known->second, link.first, link.last});
    }
    merge(edges);
    out.sheet.edges = std::move(edges);
    lay_out(out.sheet);
    return out;
  }

  static std::uint32_t push(Top& top, Item item, const LayeredNode& size) {
    top.items.push_back(item);
    top.sheet.nodes.push_back(size);
    return static_cast<std::uint32_t>(top.items.size() - 1);
  }

  [[nodiscard]] LayeredNode open_size(std::uint32_t group) const {
    const Layered& inside = out_.shapes[out_.shape_of[group]].sheet.layout;
    return {inside.width + 2 * Frame::side, inside.total + Frame::top + Frame::bottom};
  }

  [[nodiscard]] Size group_size(std::uint32_t i) const {
    const Group& group = folding_.groups[i];
    Size size;
    // "piece_4 · captured", or "×31 piece_4 … piece_64 · captured".
    const std::size_t copies = group.copies.size();
    size.line(width_of(group.name) + 12);
    if (copies > 1)
      size.characters +=
          width_of(folding_.groups[group.copies.back()].name) + 5 + std::to_string(copies).size();
    size.line(20);
    return size;
  }

  [[nodiscard]] Size output_size(const Link& link) const {
    const Graph& graph = graph_.versions[link.last]->graph;
    Size size;
    size.line(width_of(graph.value_name(link.source.value)) + 2);
    size.line(width_of(graph.context().types.print(graph.type(link.source.value))));
    return size;
  }

  const UnionGraph& graph_;
  const Links& links_;
  const Folding& folding_;
  const StageProgress& progress_;
  Ruler ruler_;
  Placement out_;
  std::vector<std::uint32_t> place_;       // by union position: in its group
  std::vector<std::vector<Life>> leaves_;  // by union position: when it is read outside its group
  bool folds_ = false;
  std::size_t laid_out_ = 0;  // nodes, of all layouts of the whole
};

}  // namespace

Placement place(const UnionGraph& graph, const Links& links, const Folding& folding,
                const StageProgress& progress) {
  return Placer(graph, links, folding, progress).run();
}

}  // namespace pw::viz
