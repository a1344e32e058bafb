// Exports Strings.
#include "base/strings.hpp"

namespace pw {

NameId Strings::intern(std::string_view text) {
  if (NameId id = find(text); id.valid()) return id;
  texts_.emplace_back(text);
  NameId id(texts_.size() - 1);
  ids_.emplace(texts_.back(), id);
  return id;
}

NameId Strings::find(std::string_view text) const {
  auto it = ids_.find(text);
  return it == ids_.end() ? NameId() : it->second;
}

}  // namespace pw
