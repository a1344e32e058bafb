// Equal nodes numbered alike: two values with one number are made by the same ops of the same
// inputs, and so have the same bits.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/graph.hpp"

namespace pw::proof {

/// A number for each value of a graph.
class Numbering {
 public:
  explicit Numbering(const Graph& graph);
  [[nodiscard]] std::uint32_t operator[](ValueId value) const {
    return value.valid() ? numbers_[value.index] : 0;
  }
  /// Of a node and what it reads, its results left out.
  [[nodiscard]] std::uint32_t of(NodeId node) const { return node_numbers_.at(node); }

 private:
  std::vector<std::uint32_t> numbers_;
  std::map<NodeId, std::uint32_t> node_numbers_;
};

/// The graph's outputs are pairs, first all on the left, then all on the right. Unfolds ops that
/// only one side has, level by level, and says which pairs have one number then.
std::vector<bool> fold_pairs(Graph& graph, std::size_t pairs, std::string* problem);

}  // namespace pw::proof
