// Texts and commands that a diagnostic is reported for, each with its message and a fixed version.
// `pwr explain CODE` prints them.
#pragma once

#include <span>
#include <string_view>

namespace pw {

struct DiagnosticExample {
  std::string_view code;
  std::string_view file;   ///< name for the text; empty if the example is a command
  std::string_view wrong;  ///< `pwr check` (rules) or `pwr stats` (a graph) reports the code for it
  std::string_view message;  ///< the message of that diagnostic, without its help
  std::string_view fixed;    ///< nothing is reported for it
};

/// Returns the examples that are rule files.
[[nodiscard]] std::span<const DiagnosticExample> rule_examples();
/// Returns the example of a code; null if it has none.
[[nodiscard]] const DiagnosticExample* diagnostic_example(std::string_view code);

}  // namespace pw
