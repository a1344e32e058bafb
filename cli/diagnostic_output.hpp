// Output of diagnostics: to standard error immediately, or as one document at exit.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace CLI {
class App;
}

namespace pw::cli {

struct Options;

/// Adds --diagnostics and --diagnostics-to.
void add_diagnostic_options(CLI::App& program, Options& options);
/// Returns true if other messages may be written to standard error.
[[nodiscard]] bool messages_wanted(const Options& options);
/// Prints text and annotations at once; collects all else for the document.
void report_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources,
                        const Options& options);
/// Writes the document, if requested. Returns the command's exit code, or kInvalidInput if the
/// command succeeded but the document could not be written.
int finish_diagnostics(const std::string& program, int code, const Options& options);

}  // namespace pw::cli
