// The names of values: 32 bits each, and nothing more for the names that differ from others by one
// number (`l17_attn_q`), as nearly all of a large graph do. Not interned: a graph looks after its
// own names. Groups and sources (`layers.17.mlp`) are kept likewise, and are interned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_index.hpp"
#include "base/strings.hpp"
#include "base/text_pool.hpp"

namespace pw {

using ValueNameId = Id<struct ValueNameTag>;
/// Equal texts have equal ids.
using TextId = Id<struct TextTag>;

class ValueNames {
 public:
  explicit ValueNames(Strings& strings) : strings_(strings) {}
  /// The same names by the same ids, over a copy of the other's strings.
  ValueNames(const ValueNames& other, Strings& strings)
      : strings_(strings), pool_(other.pool_), names_(other.names_), texts_(other.texts_) {}
  /// Invalid where the text is too long or the pool is full (8 GiB).
  ValueNameId add(std::string_view text);
  /// Stays where it is; a text put together from a pattern is interned for that.
  [[nodiscard]] std::string_view text(ValueNameId id) const;
  [[nodiscard]] std::string copy(ValueNameId id) const;
  [[nodiscard]] bool is(ValueNameId id, std::string_view text) const;

  TextId intern(std::string_view text);
  /// Empty for an invalid id.
  [[nodiscard]] std::string_view text(TextId id) const;

 private:
  struct Pattern {
    NameId before, after;  // of the number
  };
  /// Those of names, and those of groups and sources, which must not crowd them out.
  struct Patterns {
    std::vector<Pattern> items;
    HashIndex index;
  };
  std::optional<std::uint32_t> add_pattern(Patterns& patterns, std::string_view text);
  [[nodiscard]] static const Pattern* pattern(const Patterns& patterns, std::uint32_t id);
  [[nodiscard]] std::string put_together(const Pattern& pattern, std::uint32_t id) const;

  Strings& strings_;
  TextPool pool_;
  Patterns names_, texts_;
};

}  // namespace pw
