// The words for what a comparison of two graphs comes to, and how it is known.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pw {

enum class RuleVerdict : std::uint8_t {
  same_bits,         ///< every output, bit for bit; any NaN equals any other
  rounds,            ///< the same function of the reals, rounded differently
  differs_only_for,  ///< only for samples with NaN or infinity, or in the sign of a zero
  may_overflow,      ///< equal over the reals, but on some finite sample one side leaves the range
  refuted,           ///< some finite sample gives another value
  no_instance,       ///< no graph could be made
  cannot_run,        ///< an op of it has no meaning on the host
  unknown,           ///< neither proved nor refuted
};
/// same_bits, rounds, …
[[nodiscard]] std::string_view name(RuleVerdict verdict);

/// The second field beside a verdict.
enum class KnownBy : std::uint8_t { proof, samples };
[[nodiscard]] std::string_view name(KnownBy known);

/// The samples for which two graphs differ though all finite ones agree.
struct Specials {
  bool nan = false, infinity = false, zero_sign = false;
  [[nodiscard]] bool any() const { return nan || infinity || zero_sign; }
  /// "NaN, infinity and the sign of zero"
  [[nodiscard]] std::string print() const;
};

}  // namespace pw
