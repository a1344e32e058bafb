// Names of values: 32 bits each, and nothing more for names that differ from others by one number
// (`l17_attn_q`), as nearly all names of a large graph do. Not interned: a graph manages its own
// names. Groups and sources (`layers.17.mlp`) are stored likewise, and are interned.
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
/// Id of an interned text: equal texts have equal ids.
using TextId = Id<struct TextTag>;

/// A name as a pattern and its number, the first run of digits.
struct NameParts {
  static constexpr unsigned kNumberBits = 21;
  static constexpr std::uint32_t kNumbers = 1u << kNumberBits;
  std::string_view before, after;
  std::uint32_t number =
      kNumbers;  ///< not a valid number: too large, written with leading zeros, or no digits
  [[nodiscard]] bool numbered() const { return number < kNumbers; }
};
[[nodiscard]] NameParts name_parts(std::string_view name);
/// Returns true if names with a number between these texts are split into a pattern.
[[nodiscard]] bool is_name_pattern(std::string_view before, std::string_view after);

class ValueNames {
 public:
  explicit ValueNames(Strings& strings) : strings_(strings) {}
  /// Copies the names with the same ids, over a copy of the other's strings.
  ValueNames(const ValueNames& other, Strings& strings)
      : strings_(strings), pool_(other.pool_), names_(other.names_), texts_(other.texts_) {}
  /// Adds a name; invalid if the text is too long or the pool is full (8 GiB).
  ValueNameId add(std::string_view text);
  /// Adds the pattern and returns the id for the number 0; number k has the id k places further.
  /// Nothing if there are too many patterns, or if such a name would be split otherwise.
  std::optional<ValueNameId> add_pattern(std::string_view before, std::string_view after);
  /// Returns true if it may look like the derived name of an unnamed value (see Graph::value_name).
  [[nodiscard]] bool like_a_call(ValueNameId id) const;
  /// Returns the text, which stays in place; a text composed from a pattern is interned for that.
  [[nodiscard]] std::string_view text(ValueNameId id) const;
  [[nodiscard]] std::string copy(ValueNameId id) const;
  [[nodiscard]] bool is(ValueNameId id, std::string_view text) const;

  TextId intern(std::string_view text);
  /// Interns a pattern, like add_pattern.
  std::optional<TextId> intern_pattern(std::string_view before, std::string_view after);
  /// Returns the text; empty for an invalid id.
  [[nodiscard]] std::string_view text(TextId id) const;

 private:
  struct Pattern {
    NameId before, after;  // of the number
    bool like_a_call = false;
  };
  /// Patterns of names, and separately those of groups and sources, so that neither displaces the
  /// other.
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
