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

/// A name as a pattern and the number in it, its first run of digits.
struct NameParts {
  static constexpr unsigned kNumberBits = 21;
  static constexpr std::uint32_t kNumbers = 1u << kNumberBits;
  std::string_view before, after;
  std::uint32_t number =
      kNumbers;  ///< that is none: too large, written with zeros in front, or no digits
  [[nodiscard]] bool numbered() const { return number < kNumbers; }
};
[[nodiscard]] NameParts take_apart(std::string_view name);
/// Whether names with a number between these are taken apart into them.
[[nodiscard]] bool is_name_pattern(std::string_view before, std::string_view after);

class ValueNames {
 public:
  explicit ValueNames(Strings& strings) : strings_(strings) {}
  /// The same names by the same ids, over a copy of the other's strings.
  ValueNames(const ValueNames& other, Strings& strings)
      : strings_(strings), pool_(other.pool_), names_(other.names_), texts_(other.texts_) {}
  /// Invalid where the text is too long or the pool is full (8 GiB).
  ValueNameId add(std::string_view text);
  /// The name with the number 0 between these; the one with another number is so many ids further.
  /// Nothing where there are too many patterns, or such a name would be taken apart otherwise.
  std::optional<ValueNameId> add_pattern(std::string_view before, std::string_view after);
  /// Whether it may look like what an unnamed value is called (see Graph::value_name).
  [[nodiscard]] bool like_a_call(ValueNameId id) const;
  /// Stays where it is; a text put together from a pattern is interned for that.
  [[nodiscard]] std::string_view text(ValueNameId id) const;
  [[nodiscard]] std::string copy(ValueNameId id) const;
  [[nodiscard]] bool is(ValueNameId id, std::string_view text) const;

  TextId intern(std::string_view text);
  /// As add_pattern.
  std::optional<TextId> intern_pattern(std::string_view before, std::string_view after);
  /// Empty for an invalid id.
  [[nodiscard]] std::string_view text(TextId id) const;

 private:
  struct Pattern {
    NameId before, after;  // of the number
    bool like_a_call = false;
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
