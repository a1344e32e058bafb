// Numbers the names of a file in the order of their first occurrence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "base/strings.hpp"
#include "graph/value_names.hpp"

namespace pw {

/// Table of names. A name that differs from others by one number is found by its pattern and that
/// number. Patterns are few, and neighbours in a file are neighbours here; a lookup in a table of a
/// million names would miss the cache.
class NumberedNames {
 public:
  NameId intern(std::string_view name);
  [[nodiscard]] std::string text(NameId id) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Adds the name to a context's table.
  ValueNameId add_to(ValueNames& names, NameId id);

 private:
  /// A text of words_ (the pattern is kNone), or a pattern and its number.
  struct Entry {
    std::uint32_t pattern, number;
  };
  struct Pattern {
    NameId before, after;               // of words_
    std::vector<std::uint32_t> dense;   // ids by number, as far as numbers are near each other
    std::size_t count = 0, others = 0;  // of names in `dense`, and of those that are not
    // Id of the number 0, once queried; nothing if the context has no room for it.
    std::optional<std::optional<ValueNameId>> first;
  };
  static constexpr std::uint32_t kNone = 0xffffffffu;

  std::uint32_t pattern_of(const NameParts& parts);
  NameId intern_whole(std::string_view name);
  NameId add(Entry entry);

  Strings words_;
  std::vector<std::uint32_t> whole_;  // ids by word, of names that are one
  std::vector<Pattern> patterns_;
  HashIndex index_;  // of patterns_
  std::vector<Entry> entries_;
};

}  // namespace pw
