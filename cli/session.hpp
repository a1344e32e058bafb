// What every command shares: exit codes, options, loading of graphs and rules, tables, messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "dsl/dsl.hpp"
#include "graph/import/fx.hpp"

namespace CLI {
class App;
}

namespace pw::cli {

enum ExitCode : int {
  kOk = 0,
  kNegative = 1,  ///< differences, a failed test, no match, not formatted
  kUsage = 2,
  kInvalidInput = 3,
  kNumericMismatch = 4,
  kMissingCapability = 5,
  kInternalError = 70,
  kInterrupted = 130,
};

/// A command that ends early throws its exit code. The message is already printed; it is here too
/// for reports that list what went wrong.
struct Exit {
  int code;
  std::string message = {};  ///< one sentence
  std::string report = {};   ///< as it was printed, without colour
};

struct Options {
  std::string color = "auto";  ///< auto, always, never
  std::string format = "table";
  bool quiet = false;
  std::vector<std::string> arguments;  ///< of the command line, as they were given
};

class Session {
 public:
  explicit Session(const Options& options);

  ContextPtr context = std::make_shared<Context>();
  const Options& options;

  [[nodiscard]] bool color() const;
  /// A line to standard error, unless --quiet.
  void say(const std::string& line) const;
  /// Progress on a terminal only: overwrites its own line.
  void progress(const std::string& line) const;
  void report(const Diagnostics& diagnostics) const;
  /// Prints the diagnostics and throws Exit.
  [[noreturn]] void die(const Diagnostics& diagnostics, int code = kInvalidInput) const;
  [[noreturn]] void die(const std::string& message, const std::string& help, int code) const;
  template <class T>
  T need(Result<T> result, int code = kInvalidInput) const {
    if (!result) die(result.error(), code);
    return std::move(*result);
  }

 private:
  void end_progress() const;
  mutable bool progress_shown_ = false;
};

/// The options that name a graph.
struct GraphOptions {
  std::string path;
  std::vector<std::string> symbols;  ///< n=arg0_1.0,arg6_1.0
  std::size_t number = 0;            ///< of a dump with several graphs; 0: the only one
  std::vector<std::string> inputs, weights, buffers;  ///< of a dump: names, by kind
  void add_to(CLI::App& app, bool required = true);
};
/// .json, .pwg, or an FX dump, told apart by their content. Reports opaque ops and substitutions of
/// a dump. Ops that the graph declares, with a trait that is false, are refused.
Graph load(const Session& session, const GraphOptions& options, bool list_substitutions = false);
/// `n=arg0_1.0,arg6_1.0` → (n, [(arg0_1, 0), (arg6_1, 0)]).
Result<std::pair<std::string, std::vector<std::pair<std::string, int>>>> parse_symbol(
    const std::string& text);

/// The options that name rules and what to run of them.
struct RuleOptions {
  std::vector<std::string> rules;
  std::string pipeline;
  std::vector<std::string> definitions;  ///< tp=2
  void add_to(CLI::App& app, bool pipeline_too = true);
};
/// `tp=2` → (tp, 2).
Result<std::pair<std::string, std::string>> parse_definition(const std::string& text);
struct LoadedRules {
  RuleSet set;
  Env params;
};
/// `believe`: what ops are declared to be is not looked at here.
LoadedRules load(const Session& session, const RuleOptions& options, bool believe = false);

/// Rows printed aligned, as JSON objects, or as CSV. Numbers are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string print(const std::string& format) const;
  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }
  [[nodiscard]] const std::vector<std::vector<std::string>>& rows() const { return rows_; }

 private:
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
};

[[nodiscard]] std::string seconds(double s);
[[nodiscard]] std::string bytes(std::int64_t n);
/// 1,7,16,300 → numbers; diagnoses anything else.
Result<std::vector<std::int64_t>> parse_numbers(const std::string& text, std::int64_t least,
                                                std::int64_t most);

}  // namespace pw::cli
