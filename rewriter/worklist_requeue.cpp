// Exports the parts of Worklist that follow a rewrite: which anchors are asked again, and which
// match waits for which.
#include <algorithm>

#include "rewriter/worklist.hpp"

namespace pw {

/// Anchors whose match may hold `node` in this role: the way back along the pattern, in the graph.
void Worklist::find_anchors(const Role& role, NodeId node, std::set<Place>& out) const {
  const Rule& r = rule(role.rule);
  std::vector<NodeId> here{node};
  for (const Hop& hop : rules_[role.rule]->layout.way_back[role.node]) {
    OpId wanted = r.nodes[hop.to].op;
    std::vector<NodeId> there;
    auto arrive = [&](NodeId n) {
      if (graph_.op(n) == wanted) there.push_back(n);
    };
    auto leave = [&](NodeId n, std::size_t slot) {
      if (hop.kind != Hop::Kind::user_of_result && slot >= graph_.operand_count(n)) return;
      if (hop.kind == Hop::Kind::user_of_result && slot >= graph_.result_count(n)) return;
      ValueId v =
          hop.kind == Hop::Kind::user_of_result ? graph_.result(n, slot) : graph_.operand(n, slot);
      if (!v.valid()) return;
      if (hop.kind == Hop::Kind::producer) {
        if (!graph_.is_input(v)) arrive(graph_.producer(v));
        return;
      }
      for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u)) arrive(graph_.user(u));
    };
    for (NodeId n : here) {
      leave(n, static_cast<std::size_t>(hop.slot));
      if (hop.either) leave(n, static_cast<std::size_t>(1 - hop.slot));
    }
    std::sort(there.begin(), there.end());
    there.erase(std::unique(there.begin(), there.end()), there.end());
    here = std::move(there);
  }
  for (NodeId n : here) out.insert({role.rule, n});
}

void Worklist::requeue(const Applied& applied) {
  bool again = strategy_.kind != ast::Strategy::Kind::once;
  std::set<Place> places;
  for (NodeId n : applied.event.erased) {
    auto held = at_node_.find(n.index);
    if (held == at_node_.end()) continue;
    for (std::uint32_t id : held->second) {
      if (!entries_[id].live) continue;
      if (again && graph_.alive(entries_[id].anchor))
        places.insert({entries_[id].rule, entries_[id].anchor});
      kill(id);
    }
    at_node_.erase(held);
  }
  if (!again) return;
  for (NodeId n : applied.touched) {
    auto roles = roles_.find(graph_.op(n).index);
    if (roles == roles_.end()) continue;
    for (const Role& role : roles->second) find_anchors(role, n, places);
  }
  for (const Place& place : places) {
    if (auto held = current_.find(place_key(place)); held != current_.end()) kill(held->second);
    attempt(place.first, place.second);
  }
}

/// Rules declared above go first; of nested matches without such a declaration, the one that
/// consumes more.
bool Worklist::goes_before(const Entry& a, const Entry& b) const {
  if (over_[a.rule].contains(b.rule)) return true;
  if (over_[b.rule].contains(a.rule) || a.own.size() <= b.own.size()) return false;
  return std::includes(a.own.begin(), a.own.end(), b.own.begin(), b.own.end());
}

std::optional<std::uint32_t> Worklist::blocker_of(const Entry& entry) {
  for (NodeId n : entry.own) {
    auto held = at_node_.find(n.index);
    if (held == at_node_.end()) continue;
    std::erase_if(held->second, [&](std::uint32_t id) { return !entries_[id].live; });
    for (std::uint32_t id : held->second)
      if (&entries_[id] != &entry && goes_before(entries_[id], entry)) return id;
  }
  return std::nullopt;
}

/// Entries may wait for each other in a ring (`over` against nesting): then the first of them goes.
bool Worklist::release_waiting() {
  std::optional<std::uint32_t> first;
  Later later{&entries_};
  for (std::uint32_t id = 0; id < entries_.size(); ++id)
    if (entries_[id].live && (!first || later(*first, id))) first = id;
  if (!first) return false;
  force_ = true;
  heap_.push(*first);
  return true;
}

/// A path that forbade a match may be gone since, though no node of the match was touched.
bool Worklist::retry_refused() {
  if (strategy_.kind != ast::Strategy::Kind::greedy || refused_.empty() ||
      rewrites_ == rewrites_at_retry_)
    return false;
  rewrites_at_retry_ = rewrites_;
  std::set<Place> again = std::move(refused_);
  refused_.clear();
  for (const Place& place : again)
    if (graph_.alive(place.second) && !current_.contains(place_key(place)))
      attempt(place.first, place.second);
  return !heap_.empty();
}

}  // namespace pw
