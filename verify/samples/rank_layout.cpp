#include "verify/samples/rank_layout.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/collectives.hpp"

namespace pw {
namespace {

std::int64_t largest_part(std::int64_t ranks) {
  for (std::int64_t part = ranks / 2; part > 1; --part)
    if (ranks % part == 0) return part;
  return 1;
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

/// Groups of collectives in node order, then of replicated inputs.
std::vector<std::string> group_names(const Graph& before, const Graph& after) {
  std::vector<std::string> names;
  for (const Graph* graph : {&before, &after})
    for (NodeId node = graph->first(); node.valid(); node = graph->next(node))
      if (const std::string* name = group_name(*graph, node);
          name != nullptr && find_collective(graph->op_of(node).primitive) != nullptr)
        add_name(names, *name);
  for (const ValueId input : before.inputs())
    for (const std::string& name : before.replicated_over(input)) add_name(names, name);
  return names;
}

}  // namespace

std::vector<RankLayout> layouts_of(std::int64_t ranks) {
  std::vector<RankLayout> out = {{ranks, ranks, ranks, false}};
  if (ranks < 2) return out;
  const std::int64_t part = largest_part(ranks);
  if (part > 1) out.push_back({ranks, part, part, false});
  if (part > 1) out.push_back({ranks, part, part, true});
  out.push_back({ranks, 1, 1, false});
  out.push_back({ranks, ranks, part, false});
  return out;
}

RankGroups groups_of(const RankLayout& layout, const Graph& before, const Graph& after) {
  RankGroups stated = stated_groups(before).value_or(RankGroups()), out;
  stated.merge(stated_groups(after).value_or(RankGroups()));
  bool parts = false;
  std::size_t place = 0;
  for (const std::string& name : group_names(before, after)) {
    const bool second = (place++ + (layout.strided_first ? 1 : 0)) % 2 == 1;
    const auto known = stated.find(name);
    const bool whole = second && layout.unstated == 1;
    const std::int64_t size = known != stated.end() ? known->second.size
                              : whole               ? layout.ranks
                                                    : layout.unstated;
    const bool divides = size > 0 && layout.ranks % size == 0;
    out[name] = {size, second && divides ? layout.ranks / size : 1};
    parts = parts || size < layout.ranks;
  }
  return parts ? out : RankGroups();
}

std::string print(const RankLayout& layout, const RankGroups& groups) {
  if (layout.ranks < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [name, group] : groups)
    parts.push_back(fmt::format(
        "`{}` is {}{}", name, group.size,
        group.stride > 1 && group.size > 1 ? fmt::format(" with stride {}", group.stride) : ""));
  return fmt::format("on {} ranks{}{}", layout.ranks, parts.empty() ? "" : ", where ",
                     fmt::join(parts, " and "));
}

}  // namespace pw
