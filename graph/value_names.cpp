// An id is a place in the pool (31 bits), or, with the top bit set, a pattern and the number in it:
// the first run of digits of the name.
#include "graph/value_names.hpp"

#include <functional>

#include "base/characters.hpp"
#include "base/parse_number.hpp"

namespace pw {
namespace {

constexpr std::uint32_t kPatternBit = 1u << 31;
constexpr unsigned kNumberBits = NameParts::kNumberBits, kPoolBits = 31;
constexpr std::uint32_t kNumbers = NameParts::kNumbers;
constexpr std::size_t kPatterns =
    (1u << (31 - kNumberBits)) - 1;  // one less: all bits set marks none

std::string with_zero(std::string_view before, std::string_view after) {
  std::string out(before);
  out += '0';
  return out += after;
}

std::uint32_t number_of(std::uint32_t id) { return id & (kNumbers - 1); }

}  // namespace

NameParts name_parts(std::string_view text) {
  NameParts parts;
  std::size_t begin = 0;
  while (begin < text.size() && !is_digit(text[begin])) ++begin;
  std::size_t end = begin;
  std::uint32_t number = 0;
  for (; end < text.size() && is_digit(text[end]) && number < kNumbers; ++end)
    number = number * 10 + static_cast<std::uint32_t>(text[end] - '0');
  if (begin == end || number >= kNumbers) return parts;
  if (end < text.size() && is_digit(text[end])) return parts;
  if (text[begin] == '0' && end - begin > 1) return parts;
  return {text.substr(0, begin), text.substr(end), number};
}

bool is_name_pattern(std::string_view before, std::string_view after) {
  const std::string zero = with_zero(before, after);
  const NameParts parts = name_parts(zero);
  return parts.numbered() && parts.before == before && parts.after == after;
}

/// Adds a pattern; nothing if the text has no number, or if the table of patterns is full.
std::optional<std::uint32_t> ValueNames::add_pattern(Patterns& patterns, std::string_view text) {
  const NameParts parts = name_parts(text);
  if (!parts.numbered()) return std::nullopt;
  const std::hash<std::string_view> hash;
  const std::uint64_t h = combine(hash(parts.before), hash(parts.after));
  std::uint32_t found = patterns.index.find(h, [&](std::uint32_t i) {
    return strings_.text(patterns.items[i].before) == parts.before &&
           strings_.text(patterns.items[i].after) == parts.after;
  });
  if (found == HashIndex::kNone) {
    if (patterns.items.size() >= kPatterns) return std::nullopt;
    found = static_cast<std::uint32_t>(patterns.items.size());
    patterns.items.push_back({strings_.intern(parts.before), strings_.intern(parts.after),
                              parts.before.ends_with("__") &&
                                  parts.after.find_first_not_of('_') == std::string_view::npos});
    patterns.index.insert(h, found);
  }
  return kPatternBit | (found << kNumberBits) | parts.number;
}

ValueNameId ValueNames::add(std::string_view text) {
  if (const auto pattern = add_pattern(names_, text)) return ValueNameId(*pattern);
  const auto place = pool_.add(text, kPoolBits);
  return place ? ValueNameId(*place) : ValueNameId();
}

std::optional<ValueNameId> ValueNames::add_pattern(std::string_view before,
                                                   std::string_view after) {
  if (!is_name_pattern(before, after)) return std::nullopt;
  const auto id = add_pattern(names_, with_zero(before, after));
  return id ? std::optional(ValueNameId(*id)) : std::nullopt;
}

bool ValueNames::like_a_call(ValueNameId id) const {
  const Pattern* p = pattern(names_, id.index);
  return p == nullptr || p->like_a_call;
}

TextId ValueNames::intern(std::string_view text) {
  const auto pattern = add_pattern(texts_, text);
  return pattern ? TextId(*pattern) : TextId(strings_.intern(text).index);
}

std::optional<TextId> ValueNames::intern_pattern(std::string_view before, std::string_view after) {
  if (!is_name_pattern(before, after)) return std::nullopt;
  const auto id = add_pattern(texts_, with_zero(before, after));
  return id ? std::optional(TextId(*id)) : std::nullopt;
}

std::string_view ValueNames::text(TextId id) const {
  if (!id.valid()) return {};
  const Pattern* p = pattern(texts_, id.index);
  return p ? strings_.text(strings_.intern(put_together(*p, id.index)))
           : strings_.text(NameId(id.index));
}

const ValueNames::Pattern* ValueNames::pattern(const Patterns& patterns, std::uint32_t id) {
  if ((id & kPatternBit) == 0) return nullptr;
  return &patterns.items[(id & ~kPatternBit) >> kNumberBits];
}

std::string ValueNames::put_together(const Pattern& pattern, std::uint32_t id) const {
  std::string out(strings_.text(pattern.before));
  out += std::to_string(number_of(id));
  return out += strings_.text(pattern.after);
}

std::string_view ValueNames::text(ValueNameId id) const {
  const Pattern* p = pattern(names_, id.index);
  return p ? strings_.text(strings_.intern(put_together(*p, id.index))) : pool_.text(id.index);
}

std::string ValueNames::copy(ValueNameId id) const {
  const Pattern* p = pattern(names_, id.index);
  return p ? put_together(*p, id.index) : std::string(pool_.text(id.index));
}

bool ValueNames::is(ValueNameId id, std::string_view text) const {
  const Pattern* p = pattern(names_, id.index);
  if (!p) return pool_.text(id.index) == text;
  const std::string_view before = strings_.text(p->before), after = strings_.text(p->after);
  if (text.size() <= before.size() + after.size() || !text.starts_with(before) ||
      !text.ends_with(after))
    return false;
  const std::string_view digits =
      text.substr(before.size(), text.size() - before.size() - after.size());
  if (digits.front() == '0' && digits.size() > 1) return false;
  return parse_number<std::uint32_t>(digits) == number_of(id.index);
}

}  // namespace pw
