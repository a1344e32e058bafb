// Equality of a graph's values: a union-find closed under congruence (equal ops of equal operands
// have equal results; Nelson & Oppen 1980). The graph itself holds all forms found so far.
#pragma once

#include <map>
#include <vector>

#include "graph/graph.hpp"

namespace pw {

class EGraph {
 public:
  explicit EGraph(const Graph& graph) : graph_(graph) {}

  /// The value that stands for all values equal to it.
  [[nodiscard]] ValueId find(ValueId v) const;
  /// False where they are equal already, or of different types.
  bool merge(ValueId a, ValueId b);
  /// Closes under congruence, and chooses one representative node for each form.
  void close();
  /// One node of each form, in order; of the last close().
  [[nodiscard]] const std::vector<NodeId>& forms() const { return forms_; }
  /// The values equal to it, itself included, in the order of their ids.
  [[nodiscard]] std::vector<ValueId> members(ValueId v) const;

 private:
  const Graph& graph_;
  mutable std::vector<std::uint32_t> parent_;  // by value; grows with the graph
  std::map<ValueId, std::vector<ValueId>> members_;
  std::vector<NodeId> forms_;
};

}  // namespace pw
