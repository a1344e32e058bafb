#include "cli/diagnostic_output.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "base/io/file.hpp"
#include "cli/session.hpp"
#include "pipeline/report/diagnostics.hpp"

namespace pw::cli {
namespace {

std::vector<PlacedDiagnostic> kept;  // for the document, from all sessions of the program

bool is_document(const Options& options) {
  return options.diagnostics == "json" || options.diagnostics == "sarif";
}

}  // namespace

void add_diagnostic_options(CLI::App& program, Options& options) {
  program
      .add_option("--diagnostics", options.diagnostics,
                  "format of errors and warnings: text; json or sarif (one document at the end); "
                  "github (workflow annotations)")
      ->check(CLI::IsMember({"text", "json", "sarif", "github"}))
      ->type_name("FORM")
      ->configurable();
  program
      .add_option("--diagnostics-to", options.diagnostics_to,
                  "with json or sarif: write the document to this file, and text to standard "
                  "error; default: only the document, to standard error")
      ->type_name("FILE");
}

bool messages_wanted(const Options& options) {
  return !is_document(options) || !options.diagnostics_to.empty();
}

void report_diagnostics(const Diagnostics& diagnostics, const SourceMap& sources,
                        const Options& options) {
  Diagnostics shown = diagnostics;
  if (options.quiet)
    std::erase_if(shown, [](const Diagnostic& d) { return d.severity != Severity::error; });
  // In the order of sources and of locations in them.
  std::ranges::stable_sort(
      shown, {}, [](const Diagnostic& d) { return std::pair(d.span.source.index, d.span.begin); });
  std::vector<PlacedDiagnostic> all;
  if (options.diagnostics != "text")
    for (const Diagnostic& diagnostic : shown) all.push_back(placed(diagnostic, sources));
  if (is_document(options)) kept.insert(kept.end(), all.begin(), all.end());
  if (options.diagnostics == "github")
    print_error(github_annotations(all));
  else if (messages_wanted(options))
    print_error(render(shown, sources, {color_on_errors(options), 20}));
}

int finish_diagnostics(const std::string& program, int code, const Options& options) {
  if (!is_document(options)) return code;
  const DiagnosticRun run{program, code, std::move(kept)};
  const std::string text =
      options.diagnostics == "json" ? diagnostics_to_json(run) : diagnostics_to_sarif(run);
  if (options.diagnostics_to.empty()) {
    print_error(text);
    return code;
  }
  const auto written = write_file(options.diagnostics_to, text);
  if (written) return code;
  print_error(render(written.error(), SourceMap()));
  return code == kOk ? kInvalidInput : code;
}

}  // namespace pw::cli
