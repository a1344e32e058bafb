// What a comparison of two graphs comes to, in words that other programs may read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pw {

enum class RuleVerdict : std::uint8_t {
  same_bits,         ///< every output, bit for bit; any NaN equals any other
  rounds,            ///< the same function of the reals, rounded differently
  differs_only_for,  ///< only for samples with NaN or infinity, or in the sign of a zero
  refuted,           ///< some finite sample gives another value, or infinity or NaN on one side
  no_instance,       ///< no graph could be made
  cannot_run,        ///< an op of it has no meaning on the host
};
/// same_bits, rounds, …
[[nodiscard]] std::string_view name(RuleVerdict verdict);

/// The samples for which two graphs differ though all finite ones agree.
struct Specials {
  bool nan = false, infinity = false, zero_sign = false;
  [[nodiscard]] bool any() const { return nan || infinity || zero_sign; }
  /// "NaN, infinity and the sign of zero"
  [[nodiscard]] std::string print() const;
};

/// What was seen so far: each further sample can only make it worse.
struct Judgement {
  RuleVerdict verdict = RuleVerdict::same_bits;
  double ulps = 0;  ///< the largest distance seen, in units of the output's dtype
  Specials specials;
  std::string reason;  ///< refuted, differs_only_for: a sample; no_instance, cannot_run: why
  void rounds(double ulps);
  void differs_for(const Specials& more, std::string sample);  ///< the first sample stays
  void refute(std::string why);                                ///< the first reason stays
  void merge(const Judgement& other);
  [[nodiscard]] bool holds() const {
    return verdict == RuleVerdict::same_bits || verdict == RuleVerdict::rounds;
  }
  /// "rounds differently, by at most 3 ulp"
  [[nodiscard]] std::string print() const;
};

}  // namespace pw
