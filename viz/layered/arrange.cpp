// Orders groups so that every edge between them points forwards. The quotient graph of the groups
// must be acyclic; a group on a cycle of it is not convex. Each strongly connected component of the
// quotient is cut greedily: a maximal prefix of a group's nodes, of which all predecessors are
// placed, becomes a part. Invariant: the concatenated parts are a topological order of the nodes.
#include "viz/layered/arrange.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace pw::viz {

// Most graphs need no cut, so cycles are examined only if no order exists.
std::vector<Unit> Arranger::run(const std::vector<std::uint32_t>& nodes,
                                std::vector<std::uint32_t>& group_of) {
  nodes_ = &nodes;
  group_of_ = &group_of;
  parts_.clear();
  auto order = order_units();
  if (!order) {
    cut_cycles();
    order = order_units();
    PW_ASSERT(order.has_value(), "parts of groups have an order");
  }
  std::vector<Unit> out;
  for (const std::uint32_t unit : *order) out.push_back(units_[unit]);
  for (const std::uint32_t at : nodes) unit_of_[at] = kNobody;
  return out;
}

/// Numbers units by their first node, so that the order is close to that of the nodes.
std::optional<std::vector<std::uint32_t>> Arranger::order_units() {
  units_.clear();
  std::map<std::uint32_t, std::uint32_t> unit_of_group;
  for (const std::uint32_t at : *nodes_) {
    const std::uint32_t group = (*group_of_)[at];
    const auto next = static_cast<std::uint32_t>(units_.size());
    if (group != kNobody) {
      const auto [known, fresh] = unit_of_group.try_emplace(group, next);
      unit_of_[at] = known->second;
      if (!fresh) continue;
    }
    unit_of_[at] = next;
    units_.push_back({group != kNobody, group != kNobody ? group : at});
  }
  arrows_.clear();
  for (const std::uint32_t at : *nodes_)
    for (const Link& link : links_.of(at)) {
      if (link.source.kind != Source::Kind::node) continue;
      const std::uint32_t from = unit_of_[link.source.index];
      if (from != kNobody && from != unit_of_[at]) arrows_.push_back({from, unit_of_[at]});
    }
  return stable_order(units_.size(), arrows_);
}

/// A component of one unit needs no cut, and a component without groups cannot exist: the nodes
/// themselves are acyclic.
void Arranger::cut_cycles() {
  const std::vector<std::uint32_t> component = components(units_.size(), arrows_);
  std::map<std::uint32_t, std::size_t> units;  // by component
  std::set<std::uint32_t> with_groups;
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
    ++units[component[unit]];
    if (units_[unit].group) with_groups.insert(component[unit]);
  }
  for (const std::uint32_t id : with_groups)
    if (units[id] > 1) cut_component(component, id);
}

/// Places one part after another: a unit whose predecessors are all placed, otherwise the placeable
/// part of the unit that waits for the fewest nodes.
void Arranger::cut_component(const std::vector<std::uint32_t>& component, std::uint32_t id) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> left;  // by unit: nodes in order
  for (const std::uint32_t at : *nodes_)
    if (component[unit_of_[at]] == id) left[unit_of_[at]].push_back(at);
  std::set<std::uint32_t> waiting;  // nodes that are not in a part yet
  for (const auto& [unit, nodes] : left) waiting.insert(nodes.begin(), nodes.end());
  std::set<std::uint32_t> begun;
  while (!left.empty()) {
    std::uint32_t best = kNobody;
    std::size_t least = 0;
    std::vector<std::uint32_t> part;
    for (const auto& [unit, nodes] : left) {
      const std::vector<std::uint32_t> now = ready(nodes, waiting);
      const std::size_t later = nodes.size() - now.size();
      if (now.empty() || (best != kNobody && later >= least)) continue;
      best = unit;
      least = later;
      part = now;
      if (later == 0) break;
    }
    // Some waiting node has no waiting predecessor, because the node graph is acyclic; its unit has
    // a nonempty part.
    PW_ASSERT(best != kNobody, "the nodes themselves have an order");
    take(best, part, !begun.insert(best).second);
    for (const std::uint32_t at : part) waiting.erase(at);
    std::erase_if(left[best], [&](std::uint32_t at) { return !waiting.contains(at); });
    if (left[best].empty()) left.erase(best);
  }
}

/// Returns units that wait only for each other, in order.
std::vector<std::uint32_t> Arranger::ready(const std::vector<std::uint32_t>& nodes,
                                           const std::set<std::uint32_t>& waiting) const {
  std::set<std::uint32_t> chosen;
  std::vector<std::uint32_t> out;
  for (const std::uint32_t at : nodes) {
    const std::span<const Link> links = links_.of(at);
    const bool free = std::all_of(links.begin(), links.end(), [&](const Link& link) {
      return link.source.kind != Source::Kind::node || !waiting.contains(link.source.index) ||
             chosen.contains(link.source.index);
    });
    if (!free) continue;
    chosen.insert(at);
    out.push_back(at);
  }
  return out;
}

/// The first part keeps the group; each further part becomes a group of its own, with a number in
/// its name.
void Arranger::take(std::uint32_t unit, const std::vector<std::uint32_t>& part, bool further) {
  if (!further) return;
  Group& whole = groups_[units_[unit].index];
  const std::size_t number = ++parts_[units_[unit].index];
  Group rest{whole.name + " (part " + std::to_string(number + 1) + ")", whole.kind, part,
             whole.parent};
  std::erase_if(whole.nodes,
                [&](std::uint32_t at) { return std::binary_search(part.begin(), part.end(), at); });
  for (const std::uint32_t at : part) (*group_of_)[at] = static_cast<std::uint32_t>(groups_.size());
  groups_.push_back(std::move(rest));
}

}  // namespace pw::viz
