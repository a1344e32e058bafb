// The meaning of every diagnostic code. `pwr explain CODE`, SARIF, docs/codes.md and their tests
// read this one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/diagnostic.hpp"

namespace pw {

/// How a program ends after a diagnostic stopped it. With several diagnostics, the last of these
/// endings applies.
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

/// Returns all codes, ascending.
[[nodiscard]] std::span<const DiagnosticCode> diagnostic_codes();
/// Returns the entry of a code; null for any other word.
[[nodiscard]] const DiagnosticCode* diagnostic_code(std::string_view code);
/// Returns the ending that the codes of these diagnostics require. Codes missing from the table
/// count as invalid input.
[[nodiscard]] Ending ending_of(const Diagnostics& diagnostics);

}  // namespace pw
