// The names of values: 32 bits each, and nothing more for the names that differ from others by one
// number (`l17_attn_q`), as nearly all of a large graph do. Not interned: a graph looks after its
// own names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "base/strings.hpp"
#include "base/text_pool.hpp"

namespace pw {

using ValueNameId = Id<struct ValueNameTag>;

class ValueNames {
 public:
  explicit ValueNames(Strings& strings) : strings_(strings) {}
  /// Invalid where the text is too long or the pool is full (8 GiB).
  ValueNameId add(std::string_view text);
  /// Stays where it is; a text put together from a pattern is interned for that.
  [[nodiscard]] std::string_view text(ValueNameId id) const;
  [[nodiscard]] std::string copy(ValueNameId id) const;
  [[nodiscard]] bool is(ValueNameId id, std::string_view text) const;

 private:
  struct Pattern {
    NameId before, after;  // of the number
  };
  [[nodiscard]] const Pattern* pattern(ValueNameId id) const;
  [[nodiscard]] std::string put_together(const Pattern& pattern, ValueNameId id) const;

  Strings& strings_;
  TextPool pool_;
  std::vector<Pattern> patterns_;
  HashIndex index_;
};

}  // namespace pw
