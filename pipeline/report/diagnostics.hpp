// Diagnostics for programs: placed in files, and printed as JSON, as SARIF or as annotations of a
// build service. The one place for all commands.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"

namespace pw {

/// A location in a file. Lines and columns count from 1; 0 means the file as a whole.
struct FilePlace {
  std::string file;  ///< empty: in none
  std::uint32_t line = 0, end_line = 0;
  std::uint32_t column = 0, end_column = 0;        ///< in bytes; the end is exclusive
  std::uint32_t character = 0, end_character = 0;  ///< the same in Unicode characters
};

/// A diagnostic that is independent of the sources.
struct PlacedDiagnostic {
  Severity severity = Severity::error;
  std::string code, message, label, help;
  FilePlace place;
  std::string inside;  ///< of a file without lines: "/nodes/3/op"; or what the diagnostic is about
  std::vector<std::pair<FilePlace, std::string>> related;
  std::vector<std::string> notes;
};

[[nodiscard]] PlacedDiagnostic placed(const Diagnostic& diagnostic, const SourceMap& sources);
[[nodiscard]] std::string_view name(Severity severity);

/// The diagnostics of one run of a program, and its exit code.
struct DiagnosticRun {
  std::string program;  ///< "pwr"
  int exit_code = 0;
  std::vector<PlacedDiagnostic> diagnostics;
};

/// Returns the JSON document `piecewise.diagnostics/1`; see docs/formats.md.
[[nodiscard]] std::string diagnostics_to_json(const DiagnosticRun& run);
/// Returns a SARIF 2.1.0 document.
[[nodiscard]] std::string diagnostics_to_sarif(const DiagnosticRun& run);
/// Returns one line `::error file=…,line=…::message` each, for GitHub workflows.
[[nodiscard]] std::string github_annotations(const std::vector<PlacedDiagnostic>& diagnostics);

}  // namespace pw
