#include "rewriter/analysis/meetings.hpp"

#include <algorithm>

namespace pw {

Meetings::Meetings(const RuleSet& rules, const Variants& variants)
    : rules_(rules), replaced_by_(rules.context->ops.size()) {
  for (const auto& [name, ids] : variants) {
    written_.emplace_back();
    for (RuleId id : ids) add(static_cast<Place>(written_.size() - 1), id);
  }
  count_overs(variants);
}

void Meetings::add(Place written, RuleId id) {
  Mask mask((replaced_by_.size() + 63) / 64);
  for (const PatternNode& node : rules_.rules[id].nodes) {
    if (!node.own()) continue;
    mask[node.op.index / 64] |= std::uint64_t{1} << node.op.index % 64;
    std::vector<Place>& places = replaced_by_[node.op.index];
    if (places.empty() || places.back() != written) places.push_back(written);
  }
  const auto [known, fresh] =
      classes_.try_emplace(std::move(mask), static_cast<std::uint32_t>(masks_.size()));
  if (fresh) masks_.push_back(known->first);
  class_of_[id] = known->second;
  ++written_[written][known->second];
}

void Meetings::count_overs(const Variants& variants) {
  std::map<RuleId, Place> place;
  Place next = 0;
  for (const auto& [name, ids] : variants) {
    for (RuleId id : ids) place[id] = next;
    ++next;
  }
  for (const auto& [id, at] : place)
    for (RuleId other : rules_.rules[id].over) {
      const auto there = place.find(other);
      if (there == place.end() || there->second == at) continue;
      if (share(class_of_.at(id), class_of_.at(other))) ++overs_[std::minmax(at, there->second)];
    }
}

std::vector<std::size_t> Meetings::partners(std::size_t rule) const {
  std::vector<std::size_t> out;
  for (const std::vector<Place>& places : replaced_by_)
    if (std::binary_search(places.begin(), places.end(), static_cast<Place>(rule)))
      out.insert(out.end(), std::lower_bound(places.begin(), places.end(), rule), places.end());
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Meetings::meet(RuleId a, RuleId b) const {
  const auto over = [&](RuleId i, RuleId j) {
    const std::vector<RuleId>& ids = rules_.rules[i].over;
    return std::find(ids.begin(), ids.end(), j) != ids.end();
  };
  return share(class_of_.at(a), class_of_.at(b)) && !over(a, b) && !over(b, a);
}

bool Meetings::share(std::uint32_t a, std::uint32_t b) const {
  for (std::size_t i = 0; i < masks_[a].size(); ++i)
    if ((masks_[a][i] & masks_[b][i]) != 0) return true;
  return false;
}

std::size_t Meetings::with_any_op(const Counts& counts) const {
  std::size_t out = 0;
  for (const auto& [one, count] : counts)
    if (share(one, one)) out += count;
  return out;
}

std::size_t Meetings::pairs_within(const Counts& counts) const {
  std::size_t out = 0;
  for (auto a = counts.begin(); a != counts.end(); ++a) {
    if (share(a->first, a->first)) out += a->second * (a->second - 1) / 2;
    for (auto b = std::next(a); b != counts.end(); ++b)
      if (share(a->first, b->first)) out += a->second * b->second;
  }
  return out;
}

std::size_t Meetings::pairs(std::size_t a, std::size_t b) const {
  if (a == b) return with_any_op(written_[a]);
  std::size_t out = 0;
  for (const auto& [one, count] : written_[a])
    for (const auto& [other, more] : written_[b])
      if (share(one, other)) out += count * more;
  const auto overs = overs_.find(std::minmax(static_cast<Place>(a), static_cast<Place>(b)));
  return out - (overs == overs_.end() ? 0 : overs->second);
}

std::size_t Meetings::pairs_from(std::size_t first) const {
  Counts all;
  std::size_t alone = 0, within = 0, overs = 0;
  for (std::size_t i = first; i < written_.size(); ++i) {
    alone += with_any_op(written_[i]);
    within += pairs_within(written_[i]);
    for (const auto& [one, count] : written_[i]) all[one] += count;
  }
  for (const auto& [pair, count] : overs_)
    if (pair.first >= first) overs += count;
  return pairs_within(all) - within + alone - overs;
}

}  // namespace pw
