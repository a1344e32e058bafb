#include "rewriter/explain/explain_groups.hpp"

#include <algorithm>

#include "rewriter/explain/code_help.hpp"

namespace pw {
namespace {

std::pair<int, int> score_of(const NearMiss& miss) { return {miss.why.matched, miss.gate}; }

/// Returns the key of a group besides the reason: the place, the op, and the rewrite that took the
/// node.
std::string likeness(const NearMiss& miss) {
  std::string out = miss.at ? miss.at->op : std::string();
  if (miss.taken_by) out += " by " + miss.taken_by->name + " in " + miss.taken_by->pass;
  if (miss.undone_by) out += " undone by " + miss.undone_by->promise;
  return out;
}

}  // namespace

bool NearMissGroups::concerns(const NearMiss& miss) const {
  if (options_.at.empty()) return true;
  const auto is_it = [&](const std::string& name) { return name == options_.at; };
  return (miss.at && std::any_of(miss.at->names.begin(), miss.at->names.end(), is_it)) ||
         std::any_of(miss.node_names.begin(), miss.node_names.end(), is_it);
}

void NearMissGroups::add(NearMiss miss) {
  if (!concerns(miss)) return;
  // Variants of one rule report a place once: the one that reached furthest.
  const std::string base = miss.rule_name.substr(0, miss.rule_name.find('['));
  std::vector<NodeId> where{miss.nodes.empty() ? miss.why.at : miss.nodes.front()};
  if (miss.complete) where = miss.nodes;
  const Score score = score_of(miss);
  const Place place(base + (miss.complete ? miss.since : ""), std::move(where));
  if (const auto known = places_.find(place); known != places_.end()) {
    if (score <= known->second.first) return;
    forget(known->second.second);
  }
  const Key key(miss.why.code, miss.why.span.begin, miss.rule_name, miss.place, likeness(miss));
  if (miss.help.empty()) miss.help = help_for(miss.why.code);
  const auto [it, fresh] = index_.try_emplace(key, groups_.size());
  places_[place] = {score, it->second};
  if (fresh) {
    groups_.push_back({std::move(miss), 1, 0, {}, {}});
    return;
  }
  NearMissGroup& group = groups_[it->second];
  if (group.count++ == 0) {
    group.first = std::move(miss);
    return;
  }
  group.others.push_back(miss.at ? miss.at->name : std::string());
  group.other_steps.push_back(miss.taken_by ? miss.taken_by->step : 0);
}

void NearMissGroups::note(NearMiss miss) { groups_.push_back({std::move(miss), 1, 0, {}, {}}); }

void NearMissGroups::note_good(std::string_view group) { ++good_[without_numbers(group)]; }

void NearMissGroups::forget(std::size_t group) {
  if (groups_[group].count > 0) --groups_[group].count;
  if (groups_[group].others.empty()) return;
  groups_[group].others.pop_back();
  groups_[group].other_steps.pop_back();
}

std::vector<NearMissGroup> NearMissGroups::take() {
  std::erase_if(groups_, [](const NearMissGroup& g) { return g.count == 0; });
  for (NearMissGroup& group : groups_)
    if (const auto good = good_.find(group.first.place); good != good_.end())
      group.matched_alike = good->second;
  const auto rank = [](const NearMissGroup& g) {
    return std::tuple(g.first.complete, g.first.why.matched, g.first.gate);
  };
  std::stable_sort(
      groups_.begin(), groups_.end(),
      [&](const NearMissGroup& a, const NearMissGroup& b) { return rank(a) > rank(b); });
  if (groups_.size() > options_.most) groups_.resize(options_.most);
  return std::move(groups_);
}

}  // namespace pw
