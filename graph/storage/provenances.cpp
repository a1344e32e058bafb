#include "graph/storage/provenances.hpp"

namespace pw {

std::uint32_t Provenances::intern(const Provenance& wanted) {
  if (wanted == Provenance{}) return 0;
  if (pairs_.back() == wanted) return static_cast<std::uint32_t>(pairs_.size() - 1);
  const auto hash = [](const Provenance& p) { return combine(p.group.index, p.source.index); };
  if (index_.size() == 0)
    for (std::uint32_t i = 1; i < pairs_.size(); ++i) index_.insert(hash(pairs_[i]), i);
  const std::uint32_t found =
      index_.find(hash(wanted), [&](std::uint32_t i) { return pairs_[i] == wanted; });
  if (found != HashIndex::kNone) return found;
  const auto number = static_cast<std::uint32_t>(pairs_.size());
  pairs_.push_back(wanted);
  index_.insert(hash(wanted), number);
  return number;
}

void Provenances::settle() {
  index_.clear();
  pairs_.shrink_to_fit();
}

}  // namespace pw
