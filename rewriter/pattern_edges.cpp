// Exports PatternEdges.
#include "rewriter/pattern_edges.hpp"

#include <algorithm>

namespace pw {

std::size_t PatternEdges::add_place(OpId op) {
  if (places_.size() <= op.index) places_.resize(op.index + 1, 0);
  if (places_[op.index] == 0) {
    places_[op.index] = static_cast<std::uint32_t>(reads_.size());
    reads_.emplace_back();
    share_.emplace_back();
  }
  return places_[op.index];
}

void PatternEdges::set(Rows& rows, std::size_t row, std::size_t column) {
  if (rows[row].size() <= column) rows[row].resize(column + 1, 0);
  rows[row][column] = 1;
}

void PatternEdges::add(const Rule& rule) {
  reach_ = std::max(reach_, rule.nodes.size());
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    const std::size_t here = add_place(node.op);
    for (PatternValueId v : node.operands) {
      if (const PatternNodeId producer = rule.values[v].producer; producer.valid())
        set(reads_, add_place(rule.nodes[producer].op), here);
      for (std::size_t j = 0; j < rule.nodes.size(); ++j) {
        const PatternNode& other = rule.nodes[PatternNodeId(j)];
        if (i == j ||
            std::find(other.operands.begin(), other.operands.end(), v) == other.operands.end())
          continue;
        set(share_, here, add_place(other.op));
      }
    }
  }
}

}  // namespace pw
