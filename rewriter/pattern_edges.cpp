// Exports PatternEdges.
#include "rewriter/pattern_edges.hpp"

#include <algorithm>

namespace pw {

void PatternEdges::set(std::vector<char>& list, OpId op) {
  if (list.size() <= op.index) list.resize(op.index + 1, 0);
  list[op.index] = 1;
}

void PatternEdges::add(const Rule& rule) {
  reach_ = std::max(reach_, rule.nodes.size());
  for (std::size_t i = 0; i < rule.nodes.size(); ++i) {
    const PatternNode& node = rule.nodes[PatternNodeId(i)];
    for (PatternValueId v : node.operands) {
      if (const PatternNodeId producer = rule.values[v].producer; producer.valid()) {
        reads_.insert(key(rule.nodes[producer].op, node.op));
        set(read_, rule.nodes[producer].op);
      }
      for (std::size_t j = 0; j < rule.nodes.size(); ++j) {
        const PatternNode& other = rule.nodes[PatternNodeId(j)];
        if (i == j ||
            std::find(other.operands.begin(), other.operands.end(), v) == other.operands.end())
          continue;
        share_.insert(key(node.op, other.op));
        set(shares_, node.op);
      }
    }
  }
}

}  // namespace pw
