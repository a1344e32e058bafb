// Orders sibling groups and single nodes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "viz/fold.hpp"
#include "viz/layered/acyclic.hpp"

namespace pw::viz {

/// Orders groups and single nodes so that every edge points forwards. Groups that are not convex,
/// in one version or across several, are cut into parts.
class Arranger {
 public:
  /// Adds parts to `groups`; they inherit the parent of the whole.
  Arranger(const UnionGraph& graph, const Links& links, std::vector<Group>& groups)
      : links_(links), groups_(groups), unit_of_(graph.nodes.size(), kNobody) {}

  /// Orders these nodes, given in ascending order. `group_of` maps union positions to groups or
  /// kNobody; it is updated with the parts.
  std::vector<Unit> run(const std::vector<std::uint32_t>& nodes,
                        std::vector<std::uint32_t>& group_of);

 private:
  std::optional<std::vector<std::uint32_t>> order_units();
  void cut_cycles();
  void cut_component(const std::vector<std::uint32_t>& component, std::uint32_t id);
  [[nodiscard]] std::vector<std::uint32_t> ready(const std::vector<std::uint32_t>& nodes,
                                                 const std::set<std::uint32_t>& waiting) const;
  void take(std::uint32_t unit, const std::vector<std::uint32_t>& part, bool further);

  const Links& links_;
  std::vector<Group>& groups_;
  std::vector<std::uint32_t> unit_of_;  // by union position; kNobody for nodes outside
  const std::vector<std::uint32_t>* nodes_ = nullptr;
  std::vector<std::uint32_t>* group_of_ = nullptr;
  std::vector<Unit> units_;
  std::vector<Arrow> arrows_;  // between units
  std::map<std::uint32_t, std::size_t> parts_;
};

}  // namespace pw::viz
