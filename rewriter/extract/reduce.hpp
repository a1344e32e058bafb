// Makes an extraction problem smaller without losing its optimum: what is never needed, what is
// dominated, what is free, what is needed in any case. What is left falls apart into independent
// parts.
#pragma once

#include "rewriter/extract/problem.hpp"

namespace pw::extract {

struct Reduced {
  /// The same classes and nodes; those that are out of the question are in no class any more, and
  /// children that are paid for elsewhere are dropped.
  Problem problem;
  std::vector<bool> forced;  ///< by class: needed by every solution; these are the roots now
  Choice free;               ///< by class: a node that costs nothing and needs nothing
};

/// Nothing where a root cannot be derived.
std::optional<Reduced> reduce(const Problem& problem);

/// One of the independent parts, with the classes and nodes that its own stand for.
struct Part {
  Problem problem;
  std::vector<ClassIndex> classes;
  std::vector<NodeIndex> nodes;
};
std::vector<Part> parts_of(const Reduced& reduced);

}  // namespace pw::extract
