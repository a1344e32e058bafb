// Stage 1: loads the graphs and rules that a request names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/graph_formats.hpp"
#include "pipeline/log.hpp"

namespace pw {

struct GraphSource {
  std::string path;                  ///< any of graph_formats(); "-" is standard input
  std::vector<std::string> symbols;  ///< of a dump: n=arg0_1.0,arg6_1.0 makes input dims symbolic
  std::vector<std::string> types;    ///< of a dump: x=bf16[n,64] states the type of an input
  std::size_t number = 0;            ///< of a dump with several graphs, from 1; 0: the only one
  std::vector<std::string> inputs, weights, buffers;  ///< of a dump: names of inputs, by kind
  /// Inputs that are equal on all ranks of each group that a collective names; `all` means every
  /// input.
  std::vector<std::string> replicated = {};
  std::vector<std::string> values = {};  ///< of symbols: s0=4
  std::string tokens = {};               ///< the symbol that counts the tokens of a step
  /// A graph of the request's context, used in place of the path.
  std::shared_ptr<const Graph> loaded = {};
  StageProgress progress = {};  ///< reports progress while a text is read
};

struct RuleSource {
  std::vector<std::string> rules;        ///< files, or names of the library
  std::string pipeline;                  ///< a pipeline, pass or rule; empty: nothing is rewritten
  std::vector<std::string> definitions;  ///< of params: tp=2
  /// Rules of the request's context, used in place of `rules`.
  std::shared_ptr<const RuleSet> loaded = {};
};

struct LoadedRules {
  RuleSet set;
  Env params;
};

/// Loads a graph. Fails with PW1320 if it declares an op with a false trait, PW1409 if a replicated
/// input does not exist.
Result<ReadGraph> load_graph(const ContextPtr& context, const GraphSource& source);
/// Loads a graph from a text; `source.path` names it in messages.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const GraphSource& source);
/// Logs the results of an import; `all` includes details.
void say_import(const ReadGraph& read, const Log& log, bool all = false);
/// Calls load_graph() and say_import().
Result<Graph> load_logged_graph(const ContextPtr& context, const GraphSource& source,
                                const Log& log, bool all = false);
/// Loads rules and logs warnings. `believe` skips the tests of declared op traits.
Result<LoadedRules> load_rules(const ContextPtr& context, const RuleSource& source, const Log& log,
                               bool believe = false);

/// Parses `n=arg0_1.0,arg6_1.0` → (n, [(arg0_1, 0), (arg6_1, 0)]). Fails with PW1401.
Result<std::pair<std::string, std::vector<std::pair<std::string, int>>>> parse_symbol(
    const std::string& text);
/// Parses `x=bf16[n,64]` → (x, bf16[n,64]). Fails with PW1401.
Result<std::pair<std::string, std::string>> parse_stated_type(const std::string& text);
/// Parses `tp=2` → (tp, 2). Fails with PW1403.
Result<std::pair<std::string, std::string>> parse_definition(const std::string& text);
/// Parses `1,7,16,300`. Fails with PW1402 on anything else, or on a number outside `least` …
/// `most`.
Result<std::vector<std::int64_t>> parse_numbers(const std::string& text, std::int64_t least,
                                                std::int64_t most);
/// Fails with PW1402 if a number of a request is outside `least` … `most`. `what` names it.
Status check_number(std::string_view what, std::int64_t number, std::int64_t least,
                    std::int64_t most);
/// Checks each number; `some` requires at least one.
Status check_numbers(std::string_view what, const std::vector<std::int64_t>& numbers,
                     std::int64_t least, std::int64_t most, bool some = true);

}  // namespace pw
