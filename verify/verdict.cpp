// Exports the names of verdicts, Specials and Judgement.
#include "verify/verdict.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace pw {

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::same_bits: return "same_bits";
    case Verdict::rounds: return "rounds";
    case Verdict::differs_only_for: return "differs_only_for";
    case Verdict::refuted: return "refuted";
    case Verdict::no_instance: return "no_instance";
    case Verdict::cannot_run: return "cannot_run";
  }
  return "?";
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

void Judgement::rounds(double more) {
  ulps = std::max(ulps, more);
  if (verdict == Verdict::same_bits) verdict = Verdict::rounds;
}

void Judgement::differs_for(const Specials& more, std::string sample) {
  if (more.any() && reason.empty()) reason = std::move(sample);
  specials.nan = specials.nan || more.nan;
  specials.infinity = specials.infinity || more.infinity;
  specials.zero_sign = specials.zero_sign || more.zero_sign;
  if (more.any() && holds()) verdict = Verdict::differs_only_for;
}

void Judgement::refute(std::string why) {
  if (verdict != Verdict::refuted) reason = std::move(why);
  verdict = Verdict::refuted;
}

void Judgement::merge(const Judgement& other) {
  if (other.verdict == Verdict::refuted) refute(other.reason);
  differs_for(other.specials, other.reason);
  if (other.verdict == Verdict::rounds || other.ulps > 0) rounds(other.ulps);
}

std::string Judgement::print() const {
  switch (verdict) {
    case Verdict::same_bits: return "same bits";
    case Verdict::rounds: return fmt::format("rounds differently, by at most {:.4g} ulp", ulps);
    case Verdict::differs_only_for:
      return fmt::format("differs only for {}: {}", specials.print(), reason);
    case Verdict::refuted: return "refuted: " + reason;
    case Verdict::no_instance: return "no instance: " + reason;
    case Verdict::cannot_run: return "cannot run: " + reason;
  }
  return "?";
}

}  // namespace pw
