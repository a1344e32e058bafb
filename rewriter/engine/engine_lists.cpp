// Rules with lists and `unless`. The match program finds the nodes that are matched once, the
// backtracking search (search.hpp) completes each such match with its members, and apply() replaces
// it.
//
// A match of lists is a maximal set, so it may change although none of its nodes changes. It is
// therefore searched for again when it is dequeued (find_again), and a set of nodes is queued once
// (identity).
#include <algorithm>
#include <map>

#include "rewriter/engine/apply.hpp"
#include "rewriter/engine/engine.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {

/// Returns the search of a rule. Searches are kept until the graph changes, since they cache lists.
Search& RuleEngine::search_of(std::uint32_t index) {
  searches_.resize(rules_.size());
  std::unique_ptr<Search>& search = searches_[index];
  const Prepared& rule = rules_[index];
  if (!search) search = std::make_unique<Search>(graph_, rule.layout(), rule.rule->base, false);
  return *search;
}

/// Returns one match for each set of nodes: of its allowed assignments the one with the smallest
/// labels; among equals the first found.
std::vector<Match> RuleEngine::matches_of(std::uint32_t index, const Candidate& c) {
  std::vector<std::vector<Match>> ways;  // by set
  std::map<std::vector<NodeId>, std::size_t> seen;
  Search& search = search_of(index);
  search.run_fixed(c.nodes, [&](const Match& match) {
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
                       [&](const Match& a, const Match& b) { return comes_first(a, b); });
    std::size_t chosen = 0;  // a single one is tried when it is dequeued
    const auto forbidden = [&](const Match& match) {
      return try_apply(graph_, rules_[index].layout(), match, run_.barriers) == Trial::forbidden;
    };
    while (chosen + 1 < set.size() && forbidden(set[chosen])) ++chosen;
    out.push_back(std::move(set[chosen]));
  }
  if (out.empty() && search.furthest().any()) reject(rules_[index], search.furthest().code);
  return out;
}

std::vector<NodeId> RuleEngine::own_nodes_of(std::uint32_t index, const Match& match) const {
  return own_nodes(graph_, rules_[index].layout(), match);
}

NodeId RuleEngine::anchor_of_entry(const Entry& entry) const {
  if (rules_[entry.rule].lists) return listed_[entry.at].anchor;
  return NodeId{std::size_t{pool_[entry.at + kAnchor]}};
}

/// Returns the nodes that are matched once, and the member from which the search starts.
Candidate RuleEngine::listed_candidate(std::uint32_t index, NodeId anchor,
                                       const std::vector<NodeId>& nodes) const {
  Candidate out;
  out.nodes = nodes;
  const PatternNodeId first = anchor_of(rules_[index].ast());
  if (first.valid() && rules_[index].ast().nodes[first].members.valid())
    out.nodes[first.index] = anchor;
  return out;
}

/// Accepts a match of the program, which reports each exchange of operands; the search tries all of
/// them.
void RuleEngine::accept_listed(std::uint32_t index, NodeId anchor, const Candidate& c) {
  const Candidate candidate = listed_candidate(index, anchor, c.nodes);
  std::pair<std::uint32_t, std::vector<NodeId>> asked{index, candidate.nodes};
  if (std::find(asked_.begin(), asked_.end(), asked) != asked_.end()) return;
  asked_.push_back(std::move(asked));
  for (Match& match : matches_of(index, candidate)) push_listed(index, anchor, std::move(match));
  for (NodeId n : search_of(index).in_the_way()) wait_for(n, anchor);
}

/// Queues a match of lists, unless it is not legal in the input graph under `once`, or the walk has
/// passed its position. Counts its set of nodes as queued.
void RuleEngine::push_listed(std::uint32_t index, NodeId anchor, Match match) {
  const auto legal = [&] {
    return try_apply(graph_, rules_[index].layout(), match, run_.barriers) == Trial::changed;
  };
  if (seeding_ ? careful_ && !legal() : !counts(index, all_nodes(match))) return;
  Entry entry;
  entry.rule = index;
  entry.position = graph_.label(own_nodes_of(index, match).front());
  if (is_behind(entry.position)) return;
  entry.at = static_cast<std::uint32_t>(listed_.size());
  ++queued_[identity(index, all_nodes(match))];
  listed_.push_back({std::move(match), anchor});
  heap_.push_back(entry);
  std::push_heap(heap_.begin(), heap_.end(), Later{this});
}

/// Compares labels of the matched nodes in pattern order, then of the members.
bool RuleEngine::comes_first(const Match& a, const Match& b) const {
  const std::vector<NodeId> x = all_nodes(a), y = all_nodes(b);
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i)
    if (x[i] != y[i]) return graph_.label(x[i]) < graph_.label(y[i]);
  return x.size() < y.size();
}

/// Orders entries of rules with lists at equal positions.
bool RuleEngine::listed_later(const Entry& a, const Entry& b) const {
  const Match &x = listed_[a.at].match, &y = listed_[b.at].match;
  return comes_first(y, x) || (!comes_first(x, y) && a.at > b.at);
}

/// Returns the anchor: the first of the members in order, which changes when nodes move.
NodeId RuleEngine::anchor_now(const Listed& known, std::uint32_t index) const {
  const Rule& rule = rules_[index].ast();
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

/// Finds the same match in the present graph; nothing if it differs now, in which case the new one
/// is queued.
std::optional<Match> RuleEngine::find_again(const Entry& entry) {
  const std::vector<NodeId> nodes = all_nodes(listed_[entry.at].match);
  for (NodeId n : nodes)
    if (!graph_.alive(n)) return std::nullopt;
  listed_[entry.at].anchor = anchor_now(listed_[entry.at], entry.rule);
  const Listed known = listed_[entry.at];
  const std::vector<std::uint32_t> set = identity(entry.rule, nodes);
  std::optional<Match> out;
  for (Match& match :
       matches_of(entry.rule, listed_candidate(entry.rule, known.anchor, known.match.nodes))) {
    std::vector<std::uint32_t> found = identity(entry.rule, all_nodes(match));
    if (found == set)
      out = std::move(match);
    else if (!queued_.contains(found))  // two waiting ones would requeue each other
      push_listed(entry.rule, known.anchor, std::move(match));
  }
  for (NodeId n : search_of(entry.rule).in_the_way()) wait_for(n, known.anchor);
  return out;
}

/// Takes an entry of a rule with lists: searches for the match again, checks whether it is blocked,
/// and applies it.
std::optional<StopReason> RuleEngine::take_listed(const Entry& entry) {
  const std::vector<std::uint32_t> set = identity(entry.rule, all_nodes(listed_[entry.at].match));
  if (const auto queued = queued_.find(set); queued != queued_.end() && --queued->second == 0)
    queued_.erase(queued);
  if (is_behind(entry.position)) return std::nullopt;
  std::optional<Match> match = find_again(entry);
  if (!match) return std::nullopt;
  const NodeId anchor = listed_[entry.at].anchor;
  std::vector<NodeId> own = own_nodes_of(entry.rule, *match);
  if (const std::uint64_t now = graph_.label(own.front()); now != entry.position) {
    ++queued_[set];
    heap_.push_back(entry);
    heap_.back().position = now;
    std::push_heap(heap_.begin(), heap_.end(), Later{this});
    return std::nullopt;
  }
  own_ = own;
  if (!force_ && !rules_[entry.rule].above.empty() && blocked(entry.rule, anchor)) {
    parked_.push_back(entry);
    ++queued_[set];
    return std::nullopt;
  }
  if (run_.out_of_fuel()) return StopReason::fuel;
  if (rewrites_ >= limit_ || run_.rewrites >= run_.options.limits.rewrites)
    return StopReason::limit;
  if (run_.watch != nullptr)
    run_.watch->rewriting(rules_[entry.rule].layout().id, all_nodes(*match), run_);
  graph_.set_mark(sweep_);
  Result<Applied> applied = apply(graph_, rules_[entry.rule].layout(), *match, run_.barriers);
  for (const std::unique_ptr<Search>& search : searches_)
    if (search) search->graph_changed();
  if (applied) sweep_ = graph_.mark();
  if (!applied) return refuse_listed(entry.rule, anchor, applied.error()), std::nullopt;
  if (!applied->changed) return std::nullopt;
  note_conditions(match->conditions);
  for (NodeId n : applied->event.created)
    run_.barriers = run_.barriers || is_barrier(graph_.op_of(n));
  own_ = std::move(own);
  created_ = applied->event.created;
  erased_ = applied->event.erased;
  touched_ = std::move(applied->touched);
  run_.report.journal.add(applied->event);
  return after_rewrite(entry.rule);
}

/// Refuses a match that cannot be applied. A right side that cannot be built is an error of the
/// rule.
void RuleEngine::refuse_listed(std::uint32_t index, NodeId anchor, Diagnostics why) {
  const std::string code = why.front().code;
  if (code.starts_with("N")) reject(rules_[index], code.c_str());
  if (code == "N13" || code == "N14") refused_.push_back(anchor);
  if (code.starts_with("PW")) run_.warn_refused(rules_[index].ast(), graph_, anchor, why);
}

}  // namespace pw
