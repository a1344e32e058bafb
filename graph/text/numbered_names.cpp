#include "graph/text/numbered_names.hpp"

#include <algorithm>
#include <functional>

namespace pw {

NameId NumberedNames::intern(std::string_view name) {
  // A number this far from the known ones would let a small file create a large table.
  constexpr std::size_t kNear = 64, kTimes = 4;
  const NameParts parts = name_parts(name);
  if (!parts.numbered()) return intern_whole(name);
  const std::uint32_t i = pattern_of(parts);
  Pattern& pattern = patterns_[i];
  if (parts.number < pattern.dense.size() && pattern.dense[parts.number] != kNone)
    return NameId(pattern.dense[parts.number]);
  const bool near = parts.number < kNear + kTimes * pattern.count;
  if (pattern.others > 0 || !near) {
    const std::size_t before = entries_.size();
    if (!near || words_.find(name).valid()) {
      const NameId id = intern_whole(name);
      pattern.others += entries_.size() - before;
      return id;
    }
  }
  if (parts.number >= pattern.dense.size())
    pattern.dense.resize(std::max<std::size_t>(parts.number + 1, pattern.dense.size() * 3 / 2),
                         kNone);
  ++pattern.count;
  const NameId id = add({i, parts.number});
  pattern.dense[parts.number] = id.index;
  return id;
}

std::uint32_t NumberedNames::pattern_of(const NameParts& parts) {
  const std::hash<std::string_view> hash;
  const std::uint64_t h = combine(hash(parts.before), hash(parts.after));
  const std::uint32_t found = index_.find(h, [&](std::uint32_t i) {
    return words_.text(patterns_[i].before) == parts.before &&
           words_.text(patterns_[i].after) == parts.after;
  });
  if (found != HashIndex::kNone) return found;
  const auto fresh = static_cast<std::uint32_t>(patterns_.size());
  Pattern& pattern = patterns_.emplace_back();
  pattern.before = words_.intern(parts.before);
  pattern.after = words_.intern(parts.after);
  index_.insert(h, fresh);
  return fresh;
}

NameId NumberedNames::intern_whole(std::string_view name) {
  const NameId word = words_.intern(name);
  if (whole_.size() <= word.index) whole_.resize(words_.size(), kNone);
  if (whole_[word.index] == kNone) whole_[word.index] = add({kNone, word.index}).index;
  return NameId(whole_[word.index]);
}

NameId NumberedNames::add(Entry entry) {
  entries_.push_back(entry);
  return NameId(entries_.size() - 1);
}

std::string NumberedNames::text(NameId id) const {
  const Entry entry = entries_[id.index];
  if (entry.pattern == kNone) return std::string(words_.text(NameId(entry.number)));
  const Pattern& pattern = patterns_[entry.pattern];
  std::string out(words_.text(pattern.before));
  out += std::to_string(entry.number);
  return out += words_.text(pattern.after);
}

ValueNameId NumberedNames::add_to(ValueNames& names, NameId id) {
  const Entry entry = entries_[id.index];
  if (entry.pattern == kNone) return names.add(words_.text(NameId(entry.number)));
  Pattern& pattern = patterns_[entry.pattern];
  auto& first = pattern.first;
  if (!first) first = names.add_pattern(words_.text(pattern.before), words_.text(pattern.after));
  return *first ? ValueNameId((*first)->index + entry.number) : names.add(text(id));
}

}  // namespace pw
