// What every code of a diagnostic means: the one table that `pwr explain CODE`, SARIF,
// docs/codes.md and their tests read.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pw {

struct DiagnosticCode {
  std::string_view code;     ///< "PW0220"
  std::string_view meaning;  ///< lower case, no full stop: "an op is called that nothing declares"
  std::string_view help;     ///< what to do about it
};

/// All codes, ascending.
[[nodiscard]] std::span<const DiagnosticCode> diagnostic_codes();
/// Null for another word.
[[nodiscard]] const DiagnosticCode* diagnostic_code(std::string_view code);
/// The code of the table that is nearest to a word, for did-you-mean; empty where none is near.
[[nodiscard]] std::string nearest_code(std::string_view word);

}  // namespace pw
