// Where the diagnostics of a program go: to standard error as they come, or as one document at its
// end.
#pragma once

#include <string>

#include "base/diagnostic.hpp"

namespace CLI {
class App;
}

namespace pw::cli {

struct Options;

/// The options --diagnostics and --diagnostics-to.
void add_diagnostic_options(CLI::App& program, Options& options);
/// Whether other messages may stand on standard error.
[[nodiscard]] bool messages_wanted(const Options& options);
/// Printed at once as text or annotations, kept for the document otherwise.
void report_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources,
                        const Options& options);
/// Writes the document, where one is asked for. The exit code: the command's, or kInvalidInput
/// where the command succeeded and the document was lost.
int finish_diagnostics(const std::string& program, int code, const Options& options);

}  // namespace pw::cli
