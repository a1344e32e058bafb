// Interned strings: a NameId compares as an integer and prints as its text.
#pragma once

#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "base/id.hpp"
#include "base/text_pool.hpp"

namespace pw {

using NameId = Id<struct NameTag>;

class Strings {
 public:
  NameId intern(std::string_view text);
  /// Returns the id of an interned text; empty if it is not interned.
  [[nodiscard]] NameId find(std::string_view text) const;
  /// Returns the text, which stays in place for the life of the table.
  [[nodiscard]] std::string_view text(NameId id) const { return pool_.text(places_[id.index]); }
  [[nodiscard]] std::size_t size() const { return places_.size(); }

 private:
  TextPool pool_;
  std::vector<std::uint32_t> places_;
  HashIndex index_;
};

}  // namespace pw
