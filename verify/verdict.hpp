// What a comparison of two graphs comes to, in words that other programs may read.
#pragma once

#include <string>

#include "verify/rule_verdict.hpp"

namespace pw {

/// What was seen so far: each further sample can only make it worse.
struct Judgement {
  RuleVerdict verdict = RuleVerdict::same_bits;
  double ulps = 0;  ///< the largest distance seen, in units of the output's dtype
  Specials specials;
  /// Refuted, may_overflow, differs_only_for: a sample; no_instance, cannot_run: the cause.
  std::string reason;
  bool unrounded = false;  ///< refuted: they differ where next to nothing is rounded, too
  void rounds(double ulps);
  void differs_for(const Specials& more, std::string sample);  ///< the first sample stays
  void overflows(std::string sample);                          ///< the first sample stays
  void refute(std::string why, bool unrounded = false);        ///< the first reason stays
  void merge(const Judgement& other);
  [[nodiscard]] bool holds() const {
    return verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds;
  }
  /// "rounds differently, by at most 3 ulp"
  [[nodiscard]] std::string print() const;
};

}  // namespace pw
