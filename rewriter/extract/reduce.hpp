// Shrinks an extraction problem without losing its optimum: classes never needed, dominated nodes,
// free nodes, classes needed in any case. The rest splits into independent parts.
#pragma once

#include "rewriter/extract/problem.hpp"

namespace pw::extract {

struct Reduced {
  /// Problem over the same classes and nodes. Excluded nodes belong to no class, and children that
  /// are paid for elsewhere are dropped.
  Problem problem;
  std::vector<bool> forced;  ///< by class: needed by every solution; these are the roots now
  Choice free;               ///< by class: a node that costs nothing and needs nothing
};

/// Reduces a problem; nothing if a root cannot be derived.
std::optional<Reduced> reduce(const Problem& problem);

/// One of the independent parts, with the original classes and nodes of its own.
struct Part {
  Problem problem;
  std::vector<ClassIndex> classes;
  std::vector<NodeIndex> nodes;
};
std::vector<Part> parts_of(const Reduced& reduced);

}  // namespace pw::extract
