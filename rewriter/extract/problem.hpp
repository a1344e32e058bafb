// DAG extraction as a problem of its own: classes of equal values, nodes that compute them, roots
// that are needed. One node is chosen for each class that is needed; a node needs its children, a
// class that several need is paid once, and nothing may be computed from itself.
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
  /// Repeated children are dropped.
  NodeIndex add_node(ClassIndex owner, double cost, std::vector<ClassIndex> children);
};

/// By class the chosen node; kNone where there is none.
using Choice = std::vector<NodeIndex>;

/// What the roots need under a choice, children before those that need them. Nothing where a class
/// has no node or is computed from itself.
std::optional<std::vector<ClassIndex>> needed_classes(const Problem& problem, const Choice& choice);
/// The sum of the nodes' costs over needed_classes().
double cost_of(const Problem& problem, std::span<const ClassIndex> needed, const Choice& choice);

/// Strongly connected components of the graph of classes, numbered so that children never have a
/// higher number than those that need them.
std::vector<std::uint32_t> components_of(const Problem& problem);

/// An order of the classes in which each has some node whose children all stand before it: by
/// component, and in one by what is cheapest to derive. Classes that cannot be derived are left
/// out.
struct Derivation {
  std::vector<ClassIndex> order;
  std::vector<std::uint32_t> place;  ///< by class: in `order`; kNone if it cannot be derived
  Choice choice;                     ///< the node by which it was derived
};
Derivation derive(const Problem& problem);

}  // namespace pw::extract
