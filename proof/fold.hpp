// Value numbering: two values with one number result from the same ops on the same inputs, so they
// have the same bits.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/graph.hpp"

namespace pw::proof {

/// Assigns a number to each value of a graph.
class Numbering {
 public:
  explicit Numbering(const Graph& graph);
  [[nodiscard]] std::uint32_t operator[](ValueId value) const {
    return value.valid() ? numbers_[value.index] : 0;
  }
  /// Returns the number of a node computed from its op, attributes, and operands.
  [[nodiscard]] std::uint32_t of(NodeId node) const { return node_numbers_.at(node); }

 private:
  std::vector<std::uint32_t> numbers_;
  std::map<NodeId, std::uint32_t> node_numbers_;
};

/// Compares pairs of outputs; the graph's outputs are first all left sides, then all right sides.
/// Unfolds ops that occur on one side only, level by level. Returns for each pair whether both
/// sides have one number.
std::vector<bool> fold_pairs(Graph& graph, std::size_t pairs, std::string* problem);

}  // namespace pw::proof
