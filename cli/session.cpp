#include "cli/session.hpp"

#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "base/diagnostic_codes.hpp"
#include "base/io/standard_output.hpp"
#include "base/printable.hpp"
#include "cli/diagnostic_output.hpp"
#include "cli/help/help_format.hpp"
#include "cli/progress.hpp"
#include "cli/settings.hpp"

namespace pw::cli {
namespace {

/// Removes the codes of mistakes in arguments, because those from the parser have none either.
Diagnostics as_shown(Diagnostics diagnostics) {
  for (Diagnostic& diagnostic : diagnostics)
    if (const DiagnosticCode* row = diagnostic_code(diagnostic.code);
        row != nullptr && row->argument)
      diagnostic.code.clear();
  return diagnostics;
}

}  // namespace

Session::Session(const Options& given) : options(given) {
  for (const std::string& path : options.plugins) {
    plugins_.push_back(need(load_plugin(path)));
    plugins_.back().bind(*context);
  }
}

EngineList Session::engines() const {
  EngineList out = builtin_engines();
  for (const Plugin& plugin : plugins_)
    out.insert(out.end(), plugin.engines.begin(), plugin.engines.end());
  return out;
}

bool color_on_errors(const Options& options) {
  if (options.color == "always") return true;
  if (options.color == "never" || std::getenv("NO_COLOR")) return false;
  return ::isatty(STDERR_FILENO) != 0;
}

bool Session::color() const { return color_on_errors(options); }

void Session::say(const std::string& line) const {
  if (options.quiet || !messages_wanted(options)) return;
  push_standard_output();  // preserves the order of messages if both streams go to one pipe
  print_error(printable_lines(line) + "\n");
}

void Session::report(const Diagnostics& diagnostics) const {
  report(diagnostics, context->sources);
}

void Session::report(const Diagnostics& diagnostics, const SourceMap& sources) const {
  if (diagnostics.empty()) return;
  report_diagnostics(as_shown(diagnostics), sources, options);
}

void Session::die(const Diagnostics& diagnostics, int code) const {
  report(diagnostics);
  throw Exit{code};
}

void Session::die(const Diagnostics& diagnostics) const {
  die(diagnostics, exit_code_of(diagnostics));
}

void Session::die(const std::string& message, const std::string& help, int code) const {
  die(Diagnostics{error_at({}, "", message, help)}, code);
}

void Session::refuse_json(const std::string& why) const {
  if (json()) die("no JSON output is available: " + why, "leave out --format", kUsage);
}

Log Session::log() const {
  return {[this](const std::string& line) { say(line); },
          [this](const Progress& progress) { show_progress(progress, options); },
          [this](const Diagnostics& diagnostics) { report(diagnostics); }};
}

int exit_code_of(const Diagnostics& diagnostics) {
  switch (ending_of(diagnostics)) {
    case Ending::invalid_input: return kInvalidInput;
    case Ending::usage: return kUsage;
    case Ending::nothing_found: return kNegative;
    case Ending::missing_capability: return kMissingCapability;
    case Ending::device_failed: return kInternalError;
  }
  return kInternalError;
}

void add_type_option(CLI::App& app, std::vector<std::string>& types) {
  add_setting(app, "--type", types, "NAME=TYPE",
              "type of an input that the dump does not state: x=bf16[n,64]; repeatable");
}

void GraphOptions::add_to(CLI::App& app, bool required) {
  const OptionsOf group(app, "Graph");
  auto* graph = app.add_option("graph", path, std::string(kGraphFiles) + "; - is standard input");
  if (required) graph->required();
  add_setting(app, "--symbol", symbols, "NAME=DIMS",
              "make input dims of a dump symbolic: n=arg0_1.0,arg6_1.0 (input.axis)");
  add_type_option(app, types);
  add_setting(app, "--graph", number, "N",
              "number of the graph, from 1, in a dump with several, such as a log, or a .pt2 "
              "with several models");
  add_setting(app, "--input", inputs, "NAME",
              "treat this value of a dump as an input that changes from call to call");
  add_setting(app, "--weight", weights, "NAME", "treat this input of a dump as a weight");
  add_setting(app, "--buffer", buffers, "NAME", "treat this input of a dump as a buffer");
  add_setting(app, "--set", values, "SYMBOL=N",
              "set the value of a symbol: s0=4; repeatable, or with commas; default: taken from "
              "the tensors of --weights")
      ->delimiter(',');
  add_setting(app, "--tokens-symbol", tokens, "SYMBOL",
              "symbol that counts the tokens of a step, if a graph has several symbols");
  add_setting(app, "--replicated", replicated, "NAMES",
              "inputs with equal contents on all ranks of a collective's group: comma-separated "
              "names, or `all`")
      ->delimiter(',');
}

Graph load(const Session& session, const GraphSource& source, bool all) {
  return session.need(load_logged_graph(session.context, source, session.log(), all));
}

void RuleOptions::add_to(CLI::App& app, bool pipeline_too) {
  const OptionsOf group(app, "Rules");
  add_setting(app, "-r,--rules", rules, "FILE",
              "rule file (.pwr), or a name in the built-in library, such as llm; repeatable");
  if (pipeline_too)
    add_setting(app, "-p,--pipeline", pipeline, "pipeline, pass or rule to run, such as o2");
  add_setting(app, "-D,--define", definitions, "NAME=VALUE", "set a param of the rules: -D tp=2");
}

LoadedRules load(const Session& session, const RuleSource& source, bool believe) {
  return session.need(load_rules(session.context, source, session.log(), believe));
}

}  // namespace pw::cli
