// Exports PatternEdges.
#include "rewriter/pattern_edges.hpp"

#include <algorithm>

namespace pw {

PatternEdges::PatternEdges(std::span<const Rule* const> rules) {
  for (const Rule* rule : rules)
    for (const PatternNode& node : rule->nodes) {
      if (places_.size() <= node.op.index) places_.resize(node.op.index + 1, 0);
      std::uint32_t& place = places_[node.op.index];
      if (place == 0) place = static_cast<std::uint32_t>(width_++);
    }
  edges_.resize(width_ * width_, 0);
  any_.resize(width_, 0);
  for (const Rule* rule : rules) {
    reach_ = std::max(reach_, rule->nodes.size());
    for (const PatternNode& node : rule->nodes)
      for (PatternValueId v : node.operands) {
        if (const PatternNodeId producer = rule->values[v].producer; producer.valid())
          set(rule->nodes[producer].op, node.op, kReads);
        for (const PatternNode& other : rule->nodes)
          if (&other != &node &&
              std::find(other.operands.begin(), other.operands.end(), v) != other.operands.end())
            set(node.op, other.op, kShare);
      }
  }
}

void PatternEdges::set(OpId from, OpId to, std::uint8_t edge) {
  edges_[place(from) * width_ + place(to)] |= edge;
  any_[place(from)] |= edge;
}

}  // namespace pw
