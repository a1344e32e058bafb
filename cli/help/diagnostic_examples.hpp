// Rule texts that show a diagnostic, with the same text fixed. `pwr explain CODE` prints them.
#pragma once

#include <span>
#include <string_view>

namespace pw {

struct DiagnosticExample {
  std::string_view code;
  std::string_view wrong;  ///< `pwr check` reports the code for it
  std::string_view fixed;  ///< `pwr check` reports nothing for it
};

[[nodiscard]] std::span<const DiagnosticExample> diagnostic_examples();
/// Returns the example of a code; null if it has none.
[[nodiscard]] const DiagnosticExample* diagnostic_example(std::string_view code);

}  // namespace pw
