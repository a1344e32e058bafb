#include "verify/rule_verdict.hpp"

#include <vector>

#include <fmt/format.h>

namespace pw {

std::string_view name(RuleVerdict verdict) {
  switch (verdict) {
    case RuleVerdict::same_bits: return "same_bits";
    case RuleVerdict::rounds: return "rounds";
    case RuleVerdict::differs_only_for: return "differs_only_for";
    case RuleVerdict::may_overflow: return "may_overflow";
    case RuleVerdict::refuted: return "refuted";
    case RuleVerdict::no_instance: return "no_instance";
    case RuleVerdict::cannot_run: return "cannot_run";
    case RuleVerdict::unknown: return "unknown";
  }
  return "?";
}

std::string_view name(KnownBy known) { return known == KnownBy::proof ? "proof" : "samples"; }

void Specials::add(const Specials& more) {
  nan = nan || more.nan;
  infinity = infinity || more.infinity;
  zero_sign = zero_sign || more.zero_sign;
  rounding = rounding || more.rounding;
}

RuleVerdict Specials::verdict() const {
  if (nan || infinity || (zero_sign && !rounding)) return RuleVerdict::differs_only_for;
  return rounding ? RuleVerdict::rounds : RuleVerdict::same_bits;
}

std::string Specials::words() const {
  return (rounding ? "rounds differently, and differs for " : "differs only for ") + print();
}

std::string Specials::print() const {
  std::vector<std::string_view> parts;
  if (nan) parts.emplace_back("NaN");
  if (infinity) parts.emplace_back("infinity");
  if (zero_sign) parts.emplace_back("the sign of zero");
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ", parts[i]);
  return out;
}

}  // namespace pw
