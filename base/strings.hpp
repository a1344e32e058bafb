// Interned strings: a NameId compares as an integer and prints as its text.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/id.hpp"

namespace pw {

using NameId = Id<struct NameTag>;

class Strings {
 public:
  NameId intern(std::string_view text);
  /// The id of a text that is already there, or none.
  [[nodiscard]] NameId find(std::string_view text) const;
  [[nodiscard]] std::string_view text(NameId id) const { return texts_[id.index]; }
  [[nodiscard]] std::size_t size() const { return texts_.size(); }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, NameId> ids_;
};

}  // namespace pw
