// The first stage: graphs and rules from files, as a request names them.
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
  /// Inputs that all ranks hold alike, over each group that a collective names; `all`: every input.
  std::vector<std::string> replicated = {};
  std::vector<std::string> values = {};  ///< of symbols: s0=4
  std::string tokens = {};               ///< the symbol that counts the tokens of a step
  /// Instead of what the path names: a graph of the request's context.
  std::shared_ptr<const Graph> loaded = {};
  StageProgress progress = {};  ///< told while a text is read
};

struct RuleSource {
  std::vector<std::string> rules;        ///< files, or names of the library
  std::string pipeline;                  ///< a pipeline, pass or rule; empty: nothing is rewritten
  std::vector<std::string> definitions;  ///< of params: tp=2
  /// Instead of what `rules` names: rules of the request's context.
  std::shared_ptr<const RuleSet> loaded = {};
};

struct LoadedRules {
  RuleSet set;
  Env params;
};

/// Ops that the graph declares with a trait that is false are refused (PW1320), and replicated
/// inputs that it does not have (PW1409).
Result<ReadGraph> load_graph(const ContextPtr& context, const GraphSource& source);
/// The same of a text; `source.path` names it.
Result<ReadGraph> read_graph(const ContextPtr& context, const std::string& text,
                             const GraphSource& source);
/// Says what the import of a dump did, as far as `all` asks for.
void say_import(const ReadGraph& read, const Log& log, bool all = false);
/// load_graph() and say_import().
Result<Graph> load_graph_saying(const ContextPtr& context, const GraphSource& source,
                                const Log& log, bool all = false);
/// Warnings are said. `believe`: the traits that files declare of ops are not tried.
Result<LoadedRules> load_rules(const ContextPtr& context, const RuleSource& source, const Log& log,
                               bool believe = false);

/// `n=arg0_1.0,arg6_1.0` → (n, [(arg0_1, 0), (arg6_1, 0)]). PW1401.
Result<std::pair<std::string, std::vector<std::pair<std::string, int>>>> parse_symbol(
    const std::string& text);
/// `x=bf16[n,64]` → (x, bf16[n,64]). PW1401.
Result<std::pair<std::string, std::string>> parse_stated_type(const std::string& text);
/// `tp=2` → (tp, 2). PW1403.
Result<std::pair<std::string, std::string>> parse_definition(const std::string& text);
/// `1,7,16,300` → numbers. PW1402 for anything else, and outside of `least` … `most`.
Result<std::vector<std::int64_t>> parse_numbers(const std::string& text, std::int64_t least,
                                                std::int64_t most);
/// PW1402 where a number that a request gives is outside of `least` … `most`. `what` names it.
Status check_number(std::string_view what, std::int64_t number, std::int64_t least,
                    std::int64_t most);
/// The same of each; at least one where `some`.
Status check_numbers(std::string_view what, const std::vector<std::int64_t>& numbers,
                     std::int64_t least, std::int64_t most, bool some = true);

}  // namespace pw
