// Common parts of all commands: exit codes, options for graphs and rules, messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/exit_code.hpp"
#include "cli/output.hpp"
#include "engines/plugin.hpp"
#include "pipeline/load.hpp"
#include "pipeline/report/table.hpp"

namespace CLI {
class App;
}

namespace pw::cli {

/// Thrown by a command to exit early, after its message was printed.
struct Exit {
  int code;
};

struct Options {
  std::string color = "auto";  ///< auto, always, never
  std::string format = "table";
  bool quiet = false;
  std::string progress = "auto";       ///< auto: on a terminal; always, never
  std::string diagnostics = "text";    ///< text, json, sarif, github
  std::string diagnostics_to;          ///< a file for the document; empty: standard error
  std::vector<std::string> plugins;    ///< shared libraries
  std::vector<std::string> arguments;  ///< of the command line, then of piecewise.toml
  std::string config;                  ///< the piecewise.toml that is in force; empty: none
};

/// Returns true if standard error is colored.
[[nodiscard]] bool color_on_errors(const Options& options);

class Session {
 public:
  explicit Session(const Options& options);

  ContextPtr context = std::make_shared<Context>();
  const Options& options;

  [[nodiscard]] bool color() const;
  [[nodiscard]] bool json() const { return options.format == "json"; }
  /// Prints a line to standard error, unless --quiet.
  void say(const std::string& line) const;
  void report(const Diagnostics& diagnostics) const;
  /// Reports diagnostics of another context.
  void report(const Diagnostics& diagnostics, const SourceMap& sources) const;
  /// Prints the diagnostics and throws Exit.
  [[noreturn]] void die(const Diagnostics& diagnostics, int code) const;
  [[noreturn]] void die(const Diagnostics& diagnostics) const;
  [[noreturn]] void die(const std::string& message, const std::string& help, int code) const;
  /// Exits with code 2 under --format json, for output without a JSON form.
  void refuse_json(const std::string& why) const;
  template <class T>
  T need(Result<T> result) const {
    if (!result) die(result.error());
    return std::move(*result);
  }
  template <class T>
  T need(Result<T> result, int code) const {
    if (!result) die(result.error(), code);
    return std::move(*result);
  }
  /// Returns the engines of the program and its plugins.
  [[nodiscard]] EngineList engines() const;
  /// Returns a log that prints messages, progress, and diagnostics of the stages.
  [[nodiscard]] Log log() const;

 private:
  std::vector<Plugin> plugins_;
};

/// Returns the exit code for diagnostics: 2 for an invalid request, 1 for a missing item, 5 for a
/// missing capability, 70 for a failed device, otherwise 3.
int exit_code_of(const Diagnostics& diagnostics);

/// Help text for an argument that is a graph.
constexpr const char* kGraphFiles = "graph.json, .pwg, .pt2, an ONNX model, or a PyTorch FX dump";
void add_type_option(CLI::App& app, std::vector<std::string>& types);
/// The options that name a graph.
struct GraphOptions : GraphSource {
  void add_to(CLI::App& app, bool required = true);
};
/// Loads a graph and logs the results of its import; `all` includes every substitution.
Graph load(const Session& session, const GraphSource& source, bool all = false);

/// The options that name rules and what to run of them.
struct RuleOptions : RuleSource {
  void add_to(CLI::App& app, bool pipeline_too = true);
};
LoadedRules load(const Session& session, const RuleSource& source, bool believe = false);

}  // namespace pw::cli
