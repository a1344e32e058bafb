// What every code of a diagnostic means: the one table that `pwr explain CODE`, SARIF,
// docs/codes.md and their tests read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

/// How a program ends that was stopped by a diagnostic; where there are several, by the last of
/// these.
enum class Ending : std::uint8_t {
  invalid_input,
  usage,
  nothing_found,
  missing_capability,
  device_failed
};

struct DiagnosticCode {
  std::string_view code;     ///< "PW0220"
  std::string_view meaning;  ///< lower case, no full stop: "an op is called that nothing declares"
  std::string_view help;     ///< what to do about it
  Ending ending = Ending::invalid_input;
  bool argument = false;  ///< a mistake in an argument, which a command line shows without its code
};

/// All codes, ascending.
[[nodiscard]] std::span<const DiagnosticCode> diagnostic_codes();
/// Null for another word.
[[nodiscard]] const DiagnosticCode* diagnostic_code(std::string_view code);
/// The ending that the codes of these ask for; codes that the table lacks are invalid input.
[[nodiscard]] Ending ending_of(const Diagnostics& diagnostics);
/// The code of the table that is nearest to a word, for did-you-mean; empty where none is near.
[[nodiscard]] std::string nearest_code(std::string_view word);

}  // namespace pw
