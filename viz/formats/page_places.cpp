// Writes groups, and the layout of each shape of groups once, in whole pixels.
#include <cmath>

#include "viz/formats/page_writer.hpp"
#include "viz/scene.hpp"

namespace pw::viz {
namespace {

std::int64_t pixels(double value) { return std::llround(value); }

std::string sheet_json(const Sheet& sheet) {
  Ints x, size, rank, tops, edges;
  for (std::size_t i = 0; i < sheet.nodes.size(); ++i) {
    x.push_back(pixels(sheet.layout.x[i]));
    size.insert(size.end(), {pixels(sheet.nodes[i].width), pixels(sheet.nodes[i].height)});
    rank.push_back(sheet.layout.rank[i]);
  }
  for (std::size_t r = 0; r < sheet.layout.top.size(); ++r)
    tops.insert(tops.end(), {pixels(sheet.layout.top[r]), pixels(sheet.layout.height[r])});
  for (std::size_t e = 0; e < sheet.edges.size(); ++e) {
    const SheetEdge& edge = sheet.edges[e];
    const std::vector<double>& lanes = sheet.layout.lanes[e];
    edges.insert(edges.end(), {edge.from, edge.to, edge.first, edge.last,
                               static_cast<std::int64_t>(lanes.size())});
    for (const double lane : lanes) edges.push_back(pixels(lane));
  }
  return "\"x\":" + print(x) + ",\"size\":" + print(size) + ",\"rank\":" + print(rank) +
         ",\"rows\":" + print(tops) + ",\"edges\":" + print(edges) +
         ",\"width\":" + std::to_string(pixels(sheet.layout.width)) +
         ",\"height\":" + std::to_string(pixels(sheet.layout.total)) +
         ",\"next\":" + std::to_string(sheet.next);
}

class PlaceColumns {
 public:
  PlaceColumns(PageWriter& page, const PageParts& parts) : page_(page), in_(parts) {
    number_groups();
  }

  /// Writes shape, name, kind, parent group or −1, and nodes as runs.
  void put_groups() {
    Ints shape, name, kind, parent, nodes;
    for (const std::uint32_t i : group_at_) {
      const Group& group = in_.folding.groups[i];
      shape.push_back(in_.placement.shape_of[i]);
      name.push_back(page_.text(group.name));
      kind.push_back(static_cast<std::int64_t>(group.kind));
      parent.push_back(group.parent == kNobody ? -1 : number_of_group_[group.parent]);
      const std::size_t runs = nodes.size();
      nodes.push_back(0);
      for (std::size_t k = 0; k < group.nodes.size();) {
        std::size_t end = k + 1;
        while (end < group.nodes.size() && group.nodes[end] == group.nodes[end - 1] + 1) ++end;
        nodes.insert(nodes.end(), {group.nodes[k], static_cast<std::int64_t>(end - k)});
        ++nodes[runs];
        k = end;
      }
    }
    page_.put("groupShape", shape);
    page_.put("groupName", name);
    page_.put("groupKind", kind);
    page_.put("groupParent", parent);
    page_.put("groupNodes", nodes);
  }

  void put_shapes() {
    std::string out = "[";
    for (const Shape& shape : in_.placement.shapes) {
      const Ints leaves(shape.leaves.begin(), shape.leaves.end());
      const Ints ports(shape.ports.begin(), shape.ports.end());
      out += (out.size() > 1 ? ",\n{" : "{") + level_json(shape.level, false) +
             ",\"sources\":" + std::to_string(shape.sources) + ",\"ports\":" + print(ports) +
             ",\"leaves\":" + print(leaves) + "}";
    }
    page_.put("shapes", out + "]");
  }

  void put_whole() {
    page_.put("frame", Ints{pixels(Frame::kSide), pixels(Frame::kTop), pixels(Frame::kBottom)});
    page_.put("whole", "{" + level_json(in_.placement.whole, true) + "}");
  }

 private:
  /// Lists groups with nodes: top-level groups first, then the children of each, in order.
  void number_groups() {
    const std::vector<Group>& groups = in_.folding.groups;
    number_of_group_.assign(groups.size(), -1);
    const auto number = [&](std::uint32_t i) {
      number_of_group_[i] = static_cast<std::int64_t>(group_at_.size());
      group_at_.push_back(i);
    };
    for (std::uint32_t i = 0; i < groups.size(); ++i)
      if (groups[i].parent == kNobody && !groups[i].nodes.empty()) number(i);
    for (std::size_t k = 0; k < group_at_.size(); ++k)
      for (const Unit& unit : groups[group_at_[k]].sequence)
        if (unit.group) number(unit.index);
  }

  std::string items_json(const std::vector<Item>& items, bool whole) const {
    Ints kind, index;
    for (const Item& item : items) {
      kind.push_back(static_cast<std::int64_t>(item.kind));
      index.push_back(whole && item.kind == Item::Kind::group ? number_of_group_[item.index]
                                                              : item.index);
    }
    return ",\"kind\":" + print(kind) + ",\"index\":" + print(index);
  }

  /// Omits the items of a group without inner groups: ports, nodes, ports.
  [[nodiscard]] std::string level_json(const Level& level, bool whole) const {
    const bool plain = !whole && !level.any_group();
    std::string out = "\"folded\":{" + sheet_json(level.folded) +
                      (plain ? "" : items_json(level.items, whole)) + "}";
    if (level.any_group()) out += ",\"opened\":{" + sheet_json(level.opened) + "}";
    if (!level.unfolded_items.empty())
      out += ",\"unfolded\":{" + sheet_json(level.unfolded) +
             items_json(level.unfolded_items, whole) + "}";
    return out;
  }

  PageWriter& page_;
  const PageParts& in_;
  std::vector<std::int64_t> number_of_group_;  // on the page
  std::vector<std::uint32_t> group_at_;        // by number on the page
};

}  // namespace

void put_places(PageWriter& page, const PageParts& parts) {
  PlaceColumns columns(page, parts);
  columns.put_groups();
  columns.put_shapes();
  columns.put_whole();
}

}  // namespace pw::viz
