// Rules with lists and `unless`. The match program finds the nodes that are matched once, the
// backtracking search (search.hpp) completes each such match with its members, and apply() replaces
// it.
//
// A match of lists is a maximal set, so it may change although none of its nodes changes. It is
// therefore searched for again when it is dequeued (find_again). Invariant: a set of nodes is
// queued once (PassState::key). Cost: one search for each accepted and each dequeued match; members
// are cached between rewrites.
#include "rewriter/engine/pass/list_finder.hpp"

#include <algorithm>
#include <map>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

/// Returns the search of a rule. Searches are kept until the graph changes, since they cache lists.
Search& ListFinder::search_of(std::uint32_t index) {
  searches_.resize(pass_.rules.size());
  std::unique_ptr<Search>& search = searches_[index];
  const PassRule& rule = pass_.rules[index];
  if (!search) search = std::make_unique<Search>(graph_, rule.layout(), rule.rule->base, false);
  return *search;
}

std::vector<Match> ListFinder::matches_of(std::uint32_t index, const std::vector<NodeId>& nodes) {
  std::vector<std::vector<Match>> ways;  // by set
  std::map<std::vector<NodeId>, std::size_t> seen;
  Search& search = search_of(index);
  search.run_fixed(nodes, [&](const Match& match) {
    std::vector<NodeId> set = all_nodes(match);
    std::sort(set.begin(), set.end());
    const auto [known, fresh] = seen.try_emplace(std::move(set), ways.size());
    if (fresh) ways.emplace_back();
    ways[known->second].push_back(match);
    return true;
  });
  std::vector<Match> out;
  for (std::vector<Match>& set : ways) {
    if (set.size() > 1)
      std::stable_sort(set.begin(), set.end(),
                       [&](const Match& a, const Match& b) { return comes_first(graph_, a, b); });
    std::size_t chosen = 0;  // a single one is tried when it is dequeued
    const auto forbidden = [&](const Match& match) {
      return try_apply(graph_, pass_.rules[index].layout(), match, pass_.run.barriers) ==
             Trial::forbidden;
    };
    while (chosen + 1 < set.size() && forbidden(set[chosen])) ++chosen;
    out.push_back(std::move(set[chosen]));
  }
  if (out.empty() && search.furthest().any()) pass_.rules[index].reject(search.furthest().code);
  return out;
}

/// Returns the nodes that are matched once, and the member from which the search starts.
std::vector<NodeId> ListFinder::start_of(std::uint32_t index, NodeId anchor,
                                         std::vector<NodeId> nodes) const {
  const Rule& rule = pass_.rules[index].ast();
  const PatternNodeId first = anchor_of(rule);
  if (first.valid() && rule.nodes[first].members.valid()) nodes[first.index] = anchor;
  return nodes;
}

/// The program reports each exchange of operands; the search tries all of them.
void ListFinder::accept(std::uint32_t index, NodeId anchor, const Candidate& c) {
  std::pair<std::uint32_t, std::vector<NodeId>> start{index, start_of(index, anchor, c.nodes)};
  if (std::find(starts_.begin(), starts_.end(), start) != starts_.end()) return;
  starts_.push_back(std::move(start));
  for (Match& match : matches_of(index, starts_.back().second))
    push(index, anchor, std::move(match));
  for (NodeId n : search_of(index).in_the_way()) refusals_.wait_for(n, anchor);
}

/// Queues a match, unless it is not legal in the input graph under `once`, or the walk has passed
/// its position.
void ListFinder::push(std::uint32_t index, NodeId anchor, Match match) {
  const RuleLayout& layout = pass_.rules[index].layout();
  const auto legal = [&] {
    return try_apply(graph_, layout, match, pass_.run.barriers) == Trial::changed;
  };
  if (queue_.seeding() ? pass_.careful && !legal() : !pass_.counts(index, all_nodes(match))) return;
  const std::uint64_t position = graph_.label(own_nodes(graph_, layout, match).front());
  if (pass_.cursor.passed(position)) return;
  queue_.push_listed(index, position, {std::move(match), anchor});
}

/// Returns the anchor: the first of the members in order, which changes when nodes move.
NodeId ListFinder::anchor_now(const MatchQueue::Listed& known, std::uint32_t index) const {
  const Rule& rule = pass_.rules[index].ast();
  const PatternNodeId first = anchor_of(rule);
  if (!first.valid() || !rule.nodes[first].members.valid()) return known.anchor;
  const MembersId id = rule.nodes[first].members;
  const std::vector<PatternNodeId>& ids = rule.members[id].nodes;
  const auto root =
      static_cast<std::size_t>(std::find(ids.begin(), ids.end(), first) - ids.begin());
  NodeId out = known.anchor;
  for (const std::vector<NodeId>& member : known.match.members[id.index])
    if (graph_.label(member[root]) < graph_.label(out)) out = member[root];
  return out;
}

std::optional<Match> ListFinder::find_again(const MatchQueue::Entry& entry) {
  const std::vector<NodeId> nodes = all_nodes(queue_.listed(entry).match);
  for (NodeId n : nodes)
    if (!graph_.alive(n)) return std::nullopt;
  queue_.listed(entry).anchor = anchor_now(queue_.listed(entry), entry.rule);
  const MatchQueue::Listed known = queue_.listed(entry);
  const std::vector<std::uint32_t> key = PassState::key(entry.rule, nodes);
  std::optional<Match> out;
  for (Match& match : matches_at(entry.rule, known.anchor, known.match.nodes)) {
    std::vector<std::uint32_t> found = PassState::key(entry.rule, all_nodes(match));
    if (found == key)
      out = std::move(match);
    else if (!queue_.holds_key(found))  // two waiting ones would requeue each other
      push(entry.rule, known.anchor, std::move(match));
  }
  for (NodeId n : search_of(entry.rule).in_the_way()) refusals_.wait_for(n, known.anchor);
  return out;
}

}  // namespace pw
