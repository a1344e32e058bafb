// What every command shares: exit codes, options that name graphs and rules, messages.
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

/// A command that ends early throws its exit code. The message is already printed.
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

/// Whether what goes to standard error is coloured.
[[nodiscard]] bool color_on_errors(const Options& options);

class Session {
 public:
  explicit Session(const Options& options);

  ContextPtr context = std::make_shared<Context>();
  const Options& options;

  [[nodiscard]] bool color() const;
  [[nodiscard]] bool json() const { return options.format == "json"; }
  /// A line to standard error, unless --quiet.
  void say(const std::string& line) const;
  void report(const Diagnostics& diagnostics) const;
  /// Of another context than the session's.
  void report(const Diagnostics& diagnostics, const SourceMap& sources) const;
  /// Prints the diagnostics and throws Exit.
  [[noreturn]] void die(const Diagnostics& diagnostics, int code) const;
  [[noreturn]] void die(const Diagnostics& diagnostics) const;
  [[noreturn]] void die(const std::string& message, const std::string& help, int code) const;
  /// Ends with 2 under --format json, for what has no JSON form.
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
  /// Those of the program, and of the plugins.
  [[nodiscard]] EngineList engines() const;
  /// Says, overwrites and reports what the stages of a pipeline tell.
  [[nodiscard]] Log log() const;

 private:
  std::vector<Plugin> plugins_;
};

/// What a diagnostic ends a program with: 2 where the request is at fault, 1 where what it asks for
/// is not there, 5 where a capability is missing, 70 where a device has failed, else 3.
int exit_code_of(const Diagnostics& diagnostics);

/// What --help says of an argument that is a graph.
constexpr const char* kGraphFiles = "graph.json, .pwg, .pt2, an ONNX model, or a PyTorch FX dump";
void add_type_option(CLI::App& app, std::vector<std::string>& types);
/// The options that name a graph.
struct GraphOptions : GraphSource {
  void add_to(CLI::App& app, bool required = true);
};
/// Says what the import of a dump did; `all`: every substitution, too.
Graph load(const Session& session, const GraphSource& source, bool all = false);

/// The options that name rules and what to run of them.
struct RuleOptions : RuleSource {
  void add_to(CLI::App& app, bool pipeline_too = true);
};
LoadedRules load(const Session& session, const RuleSource& source, bool believe = false);

}  // namespace pw::cli
