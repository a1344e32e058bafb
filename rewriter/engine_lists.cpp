// Exports Engine's handling of rules with lists or `unless`: the program finds the nodes that are
// matched once, the naive search the rest; replacing goes through apply().
#include <algorithm>

#include "rewriter/apply.hpp"
#include "rewriter/engine.hpp"
#include "rewriter/legality.hpp"

namespace pw {

std::vector<Match> Engine::matches_of(std::uint32_t index, const Candidate& c) const {
  const Prepared& rule = rules_[index];
  Search search(graph_, rule.layout(), rule.rule->base, false);
  std::vector<Match> out;
  search.run_fixed(c.nodes, [&](const Match& match) {
    out.push_back(match);
    return true;
  });
  return out;
}

std::vector<NodeId> Engine::own_nodes_of(std::uint32_t index, const Match& match) const {
  return own_nodes(graph_, rules_[index].layout(), match.nodes);
}

NodeId Engine::anchor_of_entry(const Entry& entry) const {
  if (rules_[entry.rule].lists) return listed_[entry.at].anchor;
  return NodeId{std::size_t{pool_[entry.at + rules_[entry.rule].ast().nodes.size() + 1]}};
}

void Engine::accept_listed(std::uint32_t index, NodeId anchor, const Candidate& c) {
  for (Match& match : matches_of(index, c)) {
    Entry entry;
    entry.rule = index;
    entry.position = graph_.label(own_nodes_of(index, match).front());
    if (walk_ && entry.position < cursor_) continue;
    entry.at = static_cast<std::uint32_t>(listed_.size());
    listed_.push_back({std::move(match), anchor});
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), Later{this});
  }
}

std::optional<StopReason> Engine::take_listed(const Entry&) { return std::nullopt; }

}  // namespace pw
