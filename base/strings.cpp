#include "base/strings.hpp"

#include <functional>

#include "base/assert.hpp"

namespace pw {
namespace {

std::uint64_t hash(std::string_view text) { return std::hash<std::string_view>{}(text); }

}  // namespace

NameId Strings::intern(std::string_view text) {
  if (NameId id = find(text); id.valid()) return id;
  const auto place = pool_.add(text);
  PW_ASSERT(place, "more than 16 GiB of strings");
  places_.push_back(*place);
  const NameId id(places_.size() - 1);
  index_.insert(hash(text), id.index);
  return id;
}

NameId Strings::find(std::string_view text) const {
  const std::uint32_t found =
      index_.find(hash(text), [&](std::uint32_t i) { return this->text(NameId(i)) == text; });
  return found == HashIndex::kNone ? NameId() : NameId(found);
}

}  // namespace pw
