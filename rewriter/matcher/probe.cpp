#include "rewriter/matcher/probe.hpp"

#include "rewriter/matcher/anchor.hpp"

namespace pw {

std::vector<RuleLayout> layouts_of(const Graph& graph, const RunRules& rules, RuleId id) {
  std::vector<RuleLayout> out{lay_out(rules, id)};
  if (!out.front().plain()) return out;
  const GraphStatistics statistics = gather_statistics(graph);
  for (std::size_t i = 0; i < rules[id].nodes.size(); ++i) {
    const PatternNodeId anchor(i);
    if (out.front().steps.empty() || anchor == out.front().steps.front().node) continue;
    SearchPlan plan = plan_search_from(rules[id], anchor, statistics);
    if (plan.steps.empty()) continue;
    RuleLayout layout = out.front();
    layout.steps = std::move(plan.steps);
    out.push_back(std::move(layout));
  }
  return out;
}

Probe::Probe(const Graph& graph, const RunRules& rules, RuleId rule, const Env& params)
    : graph_(graph),
      ast_(rules[rule]),
      rule_(rule),
      base_(starting_env(ast_, params)),
      layouts_(layouts_of(graph, rules, rule)) {
  for (const RuleLayout& layout : layouts_)
    searches_.push_back(std::make_unique<Search>(graph_, layout, base_, false));
  talking_ = std::make_unique<Search>(graph_, layouts_.front(), base_, true);
}

void Probe::matches_with(NodeId node, const std::function<void(const Match&)>& found) {
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    const std::vector<SearchStep>& steps = layouts_[i].steps;
    if (steps.empty() || ast_.nodes[steps.front().node].op != graph_.op(node)) continue;
    searches_[i]->run(node, [&](const Match& match) {
      found(match);
      return true;
    });
  }
}

bool Probe::still_matches(std::span<const NodeId> nodes, Failure* why) {
  bool found = false;
  talking_->run_fixed(nodes, [&](const Match&) { return !(found = true); });
  if (!found) *why = talking_->furthest();
  return found;
}

void Probe::graph_changed() {
  for (const std::unique_ptr<Search>& search : searches_) search->graph_changed();
  talking_->graph_changed();
}

}  // namespace pw
