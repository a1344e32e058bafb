// Precedence between overlapping matches, decided when one is dequeued.
//
// A match is blocked while a legal match overlaps it that is declared over it, or that consumes all
// of its nodes and more. Rules above it were found once by their ops (pass_rule.cpp); here the
// program runs at the anchors that their patterns reach from the match's own nodes. Invariant: any
// blocking match has its anchor among those. Cost: paid only by rules with rules above them.
#include "rewriter/engine/pass/blockers.hpp"

#include <algorithm>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

/// Calls `found` with the replaced nodes of each legal match of a structural one.
template <class Found>
void Blockers::for_each_match(std::uint32_t index, NodeId anchor, const Candidate& c,
                              Found&& found) {
  PassRule& rule = pass_.rules[index];
  if (rule.lists) {
    for (const Match& match : lists_.matches_at(index, anchor, c.nodes))
      if (pass_.counts(index, all_nodes(match)) &&
          try_apply(graph_, rule.layout(), match, pass_.run.barriers) == Trial::changed)
        found(own_nodes(graph_, rule.layout(), match));
    return;
  }
  if (!pass_.counts(index, c.nodes) ||
      !refusals_.settle(rule, anchor, judge(graph_, pass_.run.barriers, rule, c)))
    return;
  std::vector<NodeId> own;
  for (PatternNodeId id : rule.layout().own) own.push_back(c.nodes[id.index]);
  found(own);
}

/// Returns the anchors whose matches may block the match. A match that holds all of its nodes is
/// found from any of them.
std::vector<NodeId> Blockers::anchors_near(const PassRule& rule, const std::vector<NodeId>& own) {
  const auto begins_at = [&](OpId op) {
    return std::any_of(rule.above.begin(), rule.above.end(), [&](std::uint32_t above) {
      const PatternNodeId anchor = pass_.program.rules[above].anchor;
      return !anchor.valid() || pass_.rules[above].ast().nodes[anchor].op == op;
    });
  };
  std::vector<NodeId> out;
  for (std::size_t i = 0; i < (rule.under ? own.size() : 1); ++i)
    for (const WayBack& way : pass_.program.ways_of(graph_.op(own[i])))
      if (begins_at(way.steps.empty() ? graph_.op(own[i]) : way.steps.back().to))
        requeue_.follow(way, own[i], out);
  Requeue::sort_once(out);
  return out;
}

std::vector<NodeId> Blockers::blocker_of(std::uint32_t rank, const std::vector<NodeId>& own) {
  const PassRule& rule = pass_.rules[rank];
  const NodeSet nodes(own);
  std::vector<NodeId> blocker;
  const auto overlaps = [&](std::uint32_t index, const std::vector<NodeId>& others) {
    const auto shared = static_cast<std::size_t>(
        std::count_if(others.begin(), others.end(), [&](NodeId n) { return nodes.contains(n); }));
    if (shared == 0 || pass_.cursor.passed(graph_.label(first_of(graph_, others)))) return false;
    if (pass_.run.rules.is_over(pass_.rules[index].layout().id, rule.layout().id)) return true;
    return shared == own.size() && others.size() > own.size();
  };
  for (NodeId anchor : anchors_near(rule, own)) {
    NoTrace none;
    StepBudget budget{pass_.steps};
    execute(pass_.program, graph_, anchor, pass_.constant, *pass_.registers, none, budget,
            [&](std::uint32_t index) {
              if (!blocker.empty() ||
                  std::find(rule.above.begin(), rule.above.end(), index) == rule.above.end())
                return false;
              Candidate& other = pass_.rules[index].found;
              read_candidate(graph_, *pass_.registers, pass_.rules[index], other);
              for_each_match(index, anchor, other, [&](const std::vector<NodeId>& others) {
                if (blocker.empty() && overlaps(index, others)) blocker = others;
              });
              return false;
            });
    if (!blocker.empty()) break;
  }
  return blocker;
}

}  // namespace pw
