#include "verify/verdict.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pw {

std::string print_ulps(double count) {
  std::string digits = fmt::format("{:.0f}", count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits + (count == 1 ? " ulp" : " ulps");
}

void Judgement::rounds(double more) {
  ulps = std::max(ulps, more);
  specials.rounding = true;
  if (verdict <= RuleVerdict::differs_only_for) verdict = specials.verdict();
}

void Judgement::differs_for(const Specials& more, std::string sample) {
  if (more.any() && reason.empty()) reason = std::move(sample);
  specials.add(more);
  if (more.any() && verdict <= RuleVerdict::differs_only_for) verdict = specials.verdict();
}

void Judgement::overflows(std::string sample) {
  if (verdict >= RuleVerdict::may_overflow) return;
  reason = std::move(sample);
  verdict = RuleVerdict::may_overflow;
}

void Judgement::refute(std::string why, bool without_rounding) {
  unrounded = unrounded || without_rounding;
  if (verdict != RuleVerdict::refuted) reason = std::move(why);
  verdict = RuleVerdict::refuted;
}

void Judgement::merge(const Judgement& other) {
  if (other.verdict == RuleVerdict::refuted) refute(other.reason, other.unrounded);
  if (other.verdict == RuleVerdict::may_overflow) overflows(other.reason);
  differs_for(other.specials, other.reason);
  if (other.verdict == RuleVerdict::rounds || other.ulps > 0) rounds(other.ulps);
}

std::string Judgement::print() const {
  switch (verdict) {
    case RuleVerdict::same_bits: return "same bits";
    case RuleVerdict::rounds: return "rounds differently, by at most " + print_ulps(ulps);
    case RuleVerdict::differs_only_for: return fmt::format("{}: {}", specials.words(), reason);
    case RuleVerdict::may_overflow: return "differs where it may overflow: " + reason;
    case RuleVerdict::refuted: return "refuted: " + reason;
    case RuleVerdict::no_instance: return "no instance: " + reason;
    case RuleVerdict::cannot_run: return "cannot run: " + reason;
    case RuleVerdict::unknown: return "unknown: " + reason;
  }
  return "?";
}

}  // namespace pw
