// DAG extraction as a separate problem: classes of equal values, nodes that compute them, roots
// that are needed. One node is chosen for each needed class; a node needs its children, a class
// needed several times is paid once, and nothing may be computed from itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pw::extract {

using ClassIndex = std::uint32_t;
using NodeIndex = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffff;

struct Node {
  ClassIndex owner = kNone;
  double cost = 0;                   ///< not negative
  std::vector<ClassIndex> children;  ///< each once
};

struct Problem {
  std::vector<Node> nodes;
  std::vector<std::vector<NodeIndex>> classes;
  std::vector<ClassIndex> roots;

  ClassIndex add_class();
  /// Adds a node; repeated children are dropped.
  NodeIndex add_node(ClassIndex owner, double cost, std::vector<ClassIndex> children);
};

/// Chosen node by class; kNone if there is none.
using Choice = std::vector<NodeIndex>;

/// Returns the classes that the roots need under a choice, children before their users. Nothing if
/// a class has no node or is computed from itself.
std::optional<std::vector<ClassIndex>> needed_classes(const Problem& problem, const Choice& choice);
/// Returns the sum of the nodes' costs over needed_classes().
double cost_of(const Problem& problem, std::span<const ClassIndex> needed, const Choice& choice);

/// Returns the strongly connected components of the graph of classes, numbered so that children
/// never have a higher number than their users.
std::vector<std::uint32_t> components_of(const Problem& problem);

/// Order of the classes in which each has a node whose children all precede it: by component, and
/// inside one by the cheapest derivation. Classes that cannot be derived are omitted.
struct Derivation {
  std::vector<ClassIndex> order;
  std::vector<std::uint32_t> place;  ///< by class: in `order`; kNone if it cannot be derived
  Choice choice;                     ///< the node by which it was derived
};
Derivation derive(const Problem& problem);

}  // namespace pw::extract
