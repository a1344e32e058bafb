// Reads PyTorch FX text into a graph: the output of print_readable(), gm.code, str(graph),
// print_tabular(), torch.export and TORCH_LOGS, at the level of ATen and at Dynamo's.
#pragma once

#include <string>

#include "graph/graph_format.hpp"

namespace pw {

namespace fx {
struct Function;
}

struct FxOptions {
  std::string file = {};  ///< for messages
  /// Input dims that a symbol names, by symbol, as (input name, axis): from `--symbol
  /// n=arg0_1.0,arg6_1.0`.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, int>>>> symbols = {};
  /// Types of inputs without one in the text, by name, in torch's notation: from `--type x=bf16[n,
  /// 64]`.
  std::map<std::string, std::string> types = {};
  std::int64_t symbol_min = 1, symbol_max = 32768;
  /// Number of the graph in a text with several, from 1; 0: the only one.
  std::size_t graph = 0;
  /// Kinds of inputs by name, in addition to the dump's or against it.
  std::map<std::string, InputKind> kinds = {};
  /// Least and greatest values of symbols for which the dump states none.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> ranges = {};
  /// Divisors of symbols for which the dump states none.
  std::map<std::string, std::int64_t> multiples = {};
  /// Sizes that are equal in every valid run, as torch prints them.
  std::vector<std::pair<std::string, std::string>> equal = {};
  /// Sizes that are equal only for some values of a symbol: its range is narrowed to those values.
  std::vector<std::pair<std::string, std::string>> guards = {};
  /// Reads, writes and aliases of ops that are not PyTorch's own: by target, a line in the format
  /// of torch_schemas.txt.
  std::map<std::string, std::string, std::less<>> schemas = {};
  /// Keeps calls that read program state, as attention reads its cache, as calls of the program.
  bool keep_stateful = false;
  /// Treats types as computed by PyTorch, not stated by a text: a call whose meaning here gives
  /// another type stays a call.
  bool computed_types = false;
  /// Assumes that no call writes, so that shared memory does not matter.
  bool no_writes = false;
  /// Sends each line through the grammar, and converts each call separately: for tests, which
  /// compare the fast paths with this one.
  bool one_by_one = false;
  /// Receives progress while a text of any form is read.
  StageProgress progress = {};
};

struct FxReport {
  std::map<std::string, int> opaque;       ///< calls kept as they are, by target, with counts
  std::map<std::string, int> reasons;      ///< reasons why a known target was kept, with counts
  std::string form;                        ///< "AOT autograd, functionalised (v2)"
  std::vector<std::string> substitutions;  ///< shape literals that became the symbol
  std::map<std::string, int> dropped;      ///< bookkeeping that computes nothing, with counts
  std::vector<std::string> notes;          ///< unknown facts, a line each
  /// Inputs whose kind the dump does not state, with the guessed kind.
  std::vector<std::pair<std::string, InputKind>> guessed;
  std::size_t nodes = 0;
  /// Names of the dump that refer to another value of the graph: from a view that changes nothing.
  std::map<std::string, std::string> aliases;
};

struct FxImport {
  Graph graph;
  FxReport report;
};

Result<FxImport> import_fx(const ContextPtr& context, std::string_view text,
                           const FxOptions& options);

/// Imports a graph held by a program: its inputs and calls as the tree of import/fx/ast.hpp. `form`
/// is the report's.
Result<FxImport> import_fx(const ContextPtr& context, fx::Function function,
                           const FxOptions& options, std::string form);

/// Returns true if the text contains a graph of torch.fx.
[[nodiscard]] bool looks_like_fx(std::string_view text);
/// Returns the kind of a file that is not FX text: "an ONNX file", "a zip file: …"; empty if
/// unclear.
[[nodiscard]] std::string known_as(std::string_view text);

}  // namespace pw
