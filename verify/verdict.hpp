// The accumulated verdict of a comparison of two graphs, in machine-readable words.
#pragma once

#include <string>

#include "verify/rule_verdict.hpp"

namespace pw {

/// The verdict so far; each further sample can only make it worse.
struct Judgement {
  RuleVerdict verdict = RuleVerdict::same_bits;
  double ulps = 0;  ///< largest distance, in ulp of the output's dtype
  Specials specials;
  /// A sample for refuted, may_overflow, differs_only_for; the cause for no_instance, cannot_run.
  std::string reason;
  bool unrounded = false;  ///< for refuted: the sides differ even where almost no rounding occurs
  void rounds(double ulps);
  void differs_for(const Specials& more, std::string sample);  ///< keeps the first sample
  void overflows(std::string sample);                          ///< keeps the first sample
  void refute(std::string why, bool unrounded = false);        ///< keeps the first reason
  void merge(const Judgement& other);
  [[nodiscard]] bool holds() const {
    return verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds;
  }
  /// Prints the verdict: "rounds differently, by at most 3 ulps".
  [[nodiscard]] std::string print() const;
};

/// Prints a distance: "1 ulp", "18,360 ulps".
[[nodiscard]] std::string print_ulps(double count);

}  // namespace pw
