// Verdicts of graph comparisons and how they were obtained.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pw {

enum class RuleVerdict : std::uint8_t {
  same_bits,         ///< every output, bit for bit; any NaN equals any other
  rounds,            ///< the same function of the reals, rounded differently
  differs_only_for,  ///< for NaN or infinity, perhaps with rounding, or only in the sign of a zero
  may_overflow,      ///< equal over the reals, but one side leaves the range on a finite sample
  refuted,           ///< some finite sample gives different values
  no_instance,       ///< no graph could be generated
  cannot_run,        ///< one of its ops cannot run on the host
  unknown,           ///< neither proved nor refuted
};
/// Returns the name of a verdict: same_bits, rounds, …
[[nodiscard]] std::string_view name(RuleVerdict verdict);

/// The source of a verdict, printed next to it.
enum class KnownBy : std::uint8_t { proof, samples };
[[nodiscard]] std::string_view name(KnownBy known);

/// The kinds of special values for which two graphs differ although all finite samples agree, up to
/// rounding.
struct Specials {
  bool nan = false, infinity = false, zero_sign = false;
  bool rounding = false;  ///< some finite results differ by rounding
  [[nodiscard]] bool any() const { return nan || infinity || zero_sign; }
  void add(const Specials& more);
  /// Returns same_bits, rounds, or differs_only_for. Rounding includes the sign of a zero.
  [[nodiscard]] RuleVerdict verdict() const;
  /// Prints the kinds: "NaN, infinity and the sign of zero".
  [[nodiscard]] std::string print() const;
  /// Prints the verdict differs_only_for: "differs only for NaN", or "rounds differently, and
  /// differs for NaN".
  [[nodiscard]] std::string words() const;
};

}  // namespace pw
