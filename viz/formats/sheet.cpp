#include "viz/formats/sheet.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "viz/label.hpp"

namespace pw::viz {
namespace {

// The page uses a fixed-width font of 11 pixels, so widths are known here.
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

/// Computes sizes of boxes without creating their texts.
class Ruler {
 public:
  Ruler(const UnionGraph& graph, const Links& links) : graph_(graph), links_(links) {}

  Size measure(std::uint32_t at) {
    const UnionNode& node = graph_.nodes[at];
    const Graph& g = graph_.graph_of(node);
    Size size;
    size.line(count_characters(g.op_of(node.id).name) + 2);
    if (const std::size_t width = attributes(g, node.id); width > 0) size.line(width);
    for (std::size_t r = 0; r < g.result_count(node.id); ++r) {
      const ValueId v = g.result(node.id, r);
      size.line(count_characters(g.value_name(v)) + 2 + type(g, g.type(v)));
    }
    for (const Link& link : links_.of(at)) {
      if (link.last != node.last || links_.drawn(link.source)) continue;
      if (link.source.kind == Source::Kind::literal)
        size.line(2 + count_characters(
                          operand_text(graph_.versions[link.last]->graph, link.source.value)));
      else if (link.source.kind == Source::Kind::input)
        size.line(4 + count_characters(links_.inputs[link.source.index].name) +
                  count_characters(links_.inputs[link.source.index].type));
    }
    return size;
  }

 private:
  std::size_t attributes(const Graph& g, NodeId n) {
    const auto [known, fresh] = attributes_.try_emplace(g.attributes(n).index, 0);
    if (fresh) known->second = count_characters(g.context().attributes.print(g.attributes(n)));
    return known->second;
  }
  std::size_t type(const Graph& g, TypeId id) {
    const auto [known, fresh] = types_.try_emplace(id.index, 0);
    if (fresh) known->second = count_characters(g.context().types.print(id));
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

/// Sorts version ranges and merges adjacent ones.
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
    find_readers();
    item_of_.assign(graph_.nodes.size(), kNobody);
    unit_of_ = item_of_;
    out_.shape_of.assign(folding_.groups.size(), kNobody);
    for (std::uint32_t i = 0; i < folding_.groups.size(); ++i)
      if (folding_.groups[i].same_as == i && !folding_.groups[i].nodes.empty()) add_shape(i);
    for (std::size_t i = 0; i < folding_.groups.size(); ++i)
      if (!folding_.groups[i].nodes.empty())
        out_.shape_of[i] = out_.shape_of[folding_.groups[i].same_as];
    place_whole();
    return std::move(out_);
  }

 private:
  struct Reader {
    std::uint32_t at = kNobody;  // kNobody: an output
    Life life;
  };

  void find_readers() {
    readers_.resize(graph_.nodes.size());
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at)
      for (const Link& link : links_.of(at))
        if (link.source.kind == Source::Kind::node)
          readers_[link.source.index].push_back({at, {link.first, link.last}});
    for (const Link& link : links_.outputs)
      if (link.source.kind == Source::Kind::node)
        readers_[link.source.index].push_back({kNobody, {link.first, link.last}});
  }

  /// From the inside out, at most kDeepest levels.
  void add_shape(std::uint32_t group) {
    if (out_.shape_of[group] != kNobody) return;
    for (const Unit& unit : folding_.groups[group].sequence)
      if (unit.group) add_shape(folding_.groups[unit.index].same_as);
    Shape shape = shape_of(group);
    out_.shape_of[group] = static_cast<std::uint32_t>(out_.shapes.size());
    out_.shapes.push_back(std::move(shape));
  }

  [[nodiscard]] bool is_in(std::uint32_t at, std::uint32_t group) const {
    if (at == kNobody) return false;
    std::uint32_t inner = folding_.inner_of[at];
    while (inner != kNobody && inner != group) inner = folding_.groups[inner].parent;
    return inner == group;
  }

  // ---- a group

  Shape shape_of(std::uint32_t i) {
    const Group& group = folding_.groups[i];
    Shape shape;
    shape.group = i;
    std::vector<std::vector<Life>> leaving;  // by leaf: the versions that read it outside
    for (std::uint32_t k = 0; k < group.nodes.size(); ++k) {
      std::vector<Life> lives;
      for (const std::uint32_t copy : group.copies)
        for (const Reader& reader : readers_[folding_.groups[copy].nodes[k]])
          if (!is_in(reader.at, copy)) lives.push_back(reader.life);
      if (lives.empty()) continue;
      shape.leaves.push_back(k);
      leaving.push_back(joined(std::move(lives)));
    }
    std::vector<SheetEdge> entering = find_ports(group, i, shape);
    const auto draw = [&](bool folded, std::vector<Item>& items, Sheet& closed, Sheet* opened) {
      items = items_of(group, shape, folded);
      fill_group(i, shape, items, folded, entering, leaving, closed);
      if (opened != nullptr) open(items, group.sequence, closed, *opened);
      lay_out(closed);
    };
    Level& level = shape.level;
    const bool nested = std::any_of(group.sequence.begin(), group.sequence.end(),
                                    [](const Unit& unit) { return unit.group; });
    draw(true, level.items, level.folded, nested ? &level.opened : nullptr);
    if (folds(group.sequence)) draw(false, level.unfolded_items, level.unfolded, nullptr);
    return shape;
  }

  [[nodiscard]] bool folds(const std::vector<Unit>& sequence) const {
    return std::any_of(sequence.begin(), sequence.end(), [&](const Unit& unit) {
      return unit.group && folding_.groups[unit.index].drawn_as != unit.index;
    });
  }

  [[nodiscard]] std::vector<Item> items_of(const Group& group, const Shape& shape,
                                           bool folded) const {
    std::vector<Item> items;
    for (std::uint32_t p = 0; p < shape.sources; ++p) items.push_back({Item::Kind::source, p});
    std::uint32_t number = 0;
    for (const Unit& unit : group.sequence) {
      if (!unit.group) {
        const auto found = std::lower_bound(group.nodes.begin(), group.nodes.end(), unit.index);
        items.push_back(
            {Item::Kind::node, static_cast<std::uint32_t>(found - group.nodes.begin())});
        continue;
      }
      if (!folded || folding_.groups[unit.index].drawn_as == unit.index)
        items.push_back({Item::Kind::group, number});
      ++number;
    }
    for (std::uint32_t p = 0; p < shape.leaves.size(); ++p) items.push_back({Item::Kind::leaf, p});
    return items;
  }

  /// Returns the inputs of a group, as edges from a port number to a union position. Inputs with
  /// the same source in each copy share a port.
  std::vector<SheetEdge> find_ports(const Group& group, std::uint32_t i, Shape& shape) const {
    using Outside = std::pair<bool, std::uint32_t>;
    std::map<std::vector<Outside>, std::uint32_t> sources;  // by their sources in each copy
    std::vector<SheetEdge> edges;
    for (std::uint32_t k = 0; k < group.nodes.size(); ++k) {
      const std::span<const Link> links = links_.of(group.nodes[k]);
      for (std::size_t l = 0; l < links.size(); ++l) {
        const Link& link = links[l];
        const bool node = link.source.kind == Source::Kind::node;
        if (!links_.drawn(link.source) || (node && is_in(link.source.index, i))) continue;
        std::vector<Outside> all;
        for (const std::uint32_t copy : group.copies) {
          const Source& source = links_.of(folding_.groups[copy].nodes[k])[l].source;
          all.emplace_back(source.kind == Source::Kind::node, source.index);
        }
        const auto number = static_cast<std::uint32_t>(sources.size());
        shape.ports.push_back(sources.try_emplace(std::move(all), number).first->second);
        edges.push_back({shape.ports.back(), group.nodes[k], link.first, link.last});
      }
    }
    shape.sources = static_cast<std::uint32_t>(sources.size());
    return edges;
  }

  void fill_group(std::uint32_t i, const Shape& shape, const std::vector<Item>& items, bool folded,
                  const std::vector<SheetEdge>& entering,
                  const std::vector<std::vector<Life>>& leaving, Sheet& sheet) {
    const Group& group = folding_.groups[i];
    std::vector<std::uint32_t> groups;  // in it, by number
    for (const Unit& unit : group.sequence)
      if (unit.group) groups.push_back(unit.index);
    std::map<std::uint32_t, std::uint32_t> item_of_group;
    for (std::uint32_t at = 0; at < items.size(); ++at) {
      const Item& item = items[at];
      switch (item.kind) {
        case Item::Kind::group:
          item_of_group[groups[item.index]] = at;
          sheet.nodes.push_back(group_size(groups[item.index], folded).node());
          break;
        case Item::Kind::node:
          item_of_[group.nodes[item.index]] = at;
          sheet.nodes.push_back(widest(group, item.index).node());
          break;
        case Item::Kind::source: sheet.nodes.push_back({4, 0, LayeredNode::Pin::top}); break;
        case Item::Kind::leaf: sheet.nodes.push_back({4, 0, LayeredNode::Pin::bottom}); break;
        case Item::Kind::input:
        case Item::Kind::output: break;
      }
    }
    for (const std::uint32_t at : group.nodes) unit_of_[at] = kNobody;
    for (const std::uint32_t one : groups)
      for (const std::uint32_t at : folding_.groups[one].nodes) {
        item_of_[at] = item_of_group[folded ? folding_.groups[one].drawn_as : one];
        unit_of_[at] = one;
      }
    std::vector<SheetEdge> edges;
    for (const std::uint32_t at : group.nodes)
      for (const Link& link : links_.of(at)) {
        const std::uint32_t from = link.source.index;
        if (link.source.kind != Source::Kind::node || !is_in(from, i)) continue;
        if (unit_of_[at] != kNobody && unit_of_[at] == unit_of_[from]) continue;
        edges.push_back({item_of_[from], item_of_[at], link.first, link.last});
      }
    for (const SheetEdge& edge : entering)
      edges.push_back({edge.from, item_of_[edge.to], edge.first, edge.last});
    const auto first_leaf = static_cast<std::uint32_t>(items.size() - shape.leaves.size());
    for (std::uint32_t p = 0; p < shape.leaves.size(); ++p)
      for (const Life& life : leaving[p])
        edges.push_back(
            {item_of_[group.nodes[shape.leaves[p]]], first_leaf + p, life.first, life.second});
    put_edges(edges, sheet);
  }

  /// Returns the width of the widest copy, because names differ.
  Size widest(const Group& group, std::uint32_t place) {
    Size size;
    for (const std::uint32_t copy : group.copies) {
      const Size one = ruler_.measure(folding_.groups[copy].nodes[place]);
      size.characters = std::max(size.characters, one.characters);
      size.lines = std::max(size.lines, one.lines);
    }
    return size;
  }

  /// Forward edges, one for each pair of ends in touching versions. Others lead from one
  /// group to the next that is drawn in its place, and are counted.
  static void put_edges(const std::vector<SheetEdge>& edges, Sheet& sheet) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Life>> lives;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
    std::set<std::pair<std::uint32_t, std::uint32_t>> back;
    for (const SheetEdge& edge : edges) {
      if (edge.from >= edge.to) {
        back.emplace(edge.from, edge.to);
        continue;
      }
      const auto [known, fresh] = lives.try_emplace({edge.from, edge.to});
      if (fresh) order.emplace_back(edge.from, edge.to);
      known->second.emplace_back(edge.first, edge.last);
    }
    for (const auto& ends : order)
      for (const Life& life : joined(std::move(lives[ends])))
        sheet.edges.push_back({ends.first, ends.second, life.first, life.second});
    sheet.next = back.size();
  }

  /// Lays out the same items with open groups.
  void open(const std::vector<Item>& items, const std::vector<Unit>& sequence, const Sheet& closed,
            Sheet& opened) {
    std::vector<std::uint32_t> groups;
    for (const Unit& unit : sequence)
      if (unit.group) groups.push_back(unit.index);
    opened = closed;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].kind == Item::Kind::group) opened.nodes[i] = open_size(groups[items[i].index]);
    lay_out(opened);
  }

  // ---- the whole

  void place_whole() {
    Level& level = out_.whole;
    const bool any = folds(folding_.sequence) ||
                     std::any_of(out_.shapes.begin(), out_.shapes.end(), [](const Shape& shape) {
                       return !shape.level.unfolded_items.empty();
                     });
    layouts_ = any ? 2 : 1;
    fill_whole(true, level.items, level.folded);
    if (level.any_group()) {
      level.opened = level.folded;
      for (std::size_t i = 0; i < level.items.size(); ++i)
        if (level.items[i].kind == Item::Kind::group)
          level.opened.nodes[i] = open_size(level.items[i].index);
      lay_out(level.opened);
    }
    lay_out(level.folded);
    if (!any) return;
    fill_whole(false, level.unfolded_items, level.unfolded);
    lay_out(level.unfolded);
  }

  /// Items in the order of the folding, so that edges go forward but for those to a further copy
  /// of what is drawn once.
  void fill_whole(bool folded, std::vector<Item>& items, Sheet& sheet) {
    const auto push = [&](Item item, const LayeredNode& size) {
      items.push_back(item);
      sheet.nodes.push_back(size);
      return static_cast<std::uint32_t>(items.size() - 1);
    };
    std::vector<std::uint32_t> item_of_group(folding_.groups.size(), kNobody);
    std::vector<std::uint32_t> item_of_input(links_.inputs.size(), kNobody);
    for (std::uint32_t i = 0; i < links_.inputs.size(); ++i) {
      if (links_.inputs[i].kind != InputKind::input) continue;
      Size size;
      size.line(count_characters(links_.inputs[i].name) + 2);
      size.line(count_characters(links_.inputs[i].type));
      item_of_input[i] = push({Item::Kind::input, i}, size.node());
    }
    for (const Unit& unit : folding_.sequence) {
      if (!unit.group) {
        item_of_[unit.index] =
            push({Item::Kind::node, unit.index}, ruler_.measure(unit.index).node());
        continue;
      }
      const std::uint32_t group = folded ? folding_.groups[unit.index].drawn_as : unit.index;
      if (item_of_group[group] == kNobody)
        item_of_group[group] = push({Item::Kind::group, group}, group_size(group, folded).node());
      for (const std::uint32_t at : folding_.groups[unit.index].nodes)
        item_of_[at] = item_of_group[group];
    }
    std::vector<SheetEdge> edges;
    const auto from_item = [&](const Source& source) {
      return source.kind == Source::Kind::node ? item_of_[source.index]
                                               : item_of_input[source.index];
    };
    for (std::uint32_t at = 0; at < graph_.nodes.size(); ++at) {
      tell(progress_, "laying out", laid_out_++, layouts_ * graph_.nodes.size(), "nodes");
      for (const Link& link : links_.of(at)) {
        if (!links_.drawn(link.source)) continue;
        const bool inside = link.source.kind == Source::Kind::node &&
                            folding_.group_of[at] != kNobody &&
                            folding_.group_of[at] == folding_.group_of[link.source.index];
        if (!inside) edges.push_back({from_item(link.source), item_of_[at], link.first, link.last});
      }
    }
    std::map<std::uint32_t, std::uint32_t> outputs;
    for (const Link& link : links_.outputs) {
      if (!links_.drawn(link.source)) continue;
      auto known = outputs.find(link.slot);
      if (known == outputs.end())
        known =
            outputs
                .emplace(link.slot, push({Item::Kind::output, link.slot}, output_size(link).node()))
                .first;
      edges.push_back({from_item(link.source), known->second, link.first, link.last});
    }
    put_edges(edges, sheet);
  }

  // ---- sizes of groups

  [[nodiscard]] LayeredNode open_size(std::uint32_t group) const {
    const Level& level = out_.shapes[out_.shape_of[folding_.groups[group].same_as]].level;
    const Sheet& sheet = level.any_group() ? level.opened : level.folded;
    return {sheet.layout.width + 2 * Frame::kSide,
            sheet.layout.total + Frame::kTop + Frame::kBottom};
  }

  /// Returns "piece_4 · captured", or "×31 piece_4 … piece_64 · captured", for the longest copy.
  const Size& group_size(std::uint32_t i, bool folded) {
    const auto [known, fresh] = group_sizes_.try_emplace({folding_.groups[i].same_as, folded});
    Size& size = known->second;
    if (!fresh) return size;
    for (const std::uint32_t copy : folding_.groups[folding_.groups[i].same_as].copies) {
      const Group& group = folding_.groups[copy];
      const std::vector<std::uint32_t>& siblings = folding_.groups[group.drawn_as].siblings;
      std::size_t width = count_characters(group.name) + 12;
      if (folded && siblings.size() > 1)
        width += count_characters(folding_.groups[siblings.back()].name) + 5 +
                 std::to_string(siblings.size()).size();
      size.characters = std::max(size.characters, width);
    }
    size.lines = 1;
    size.line(20);
    return size;
  }

  [[nodiscard]] Size output_size(const Link& link) const {
    const Graph& graph = graph_.versions[link.last]->graph;
    Size size;
    size.line(count_characters(graph.value_name(link.source.value)) + 2);
    size.line(count_characters(graph.context().types.print(graph.type(link.source.value))));
    return size;
  }

  const UnionGraph& graph_;
  const Links& links_;
  const Folding& folding_;
  const StageProgress& progress_;
  Ruler ruler_;
  Placement out_;
  std::vector<std::vector<Reader>> readers_;  // by union position
  // By union position, of the current sheet: its item, and its group there.
  std::vector<std::uint32_t> item_of_, unit_of_;
  std::map<std::pair<std::uint32_t, bool>, Size>
      group_sizes_;           // by first group, and whether folded
  std::size_t layouts_ = 1;   // of the whole
  std::size_t laid_out_ = 0;  // nodes, of all of them
};

}  // namespace

bool Level::any_group() const {
  return std::any_of(items.begin(), items.end(),
                     [](const Item& item) { return item.kind == Item::Kind::group; });
}

Placement place(const UnionGraph& graph, const Links& links, const Folding& folding,
                const StageProgress& progress) {
  return Placer(graph, links, folding, progress).run();
}

}  // namespace pw::viz
