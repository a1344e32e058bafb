// The forms of graphs that can be read, and the options of reading one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/progress.hpp"
#include "graph/graph.hpp"
#include "graph/size_condition.hpp"

namespace pw {

/// A guard of a program: a comparison of sizes, as torch prints them. Both sides are empty if the
/// guard has another form.
struct FxGuard {
  std::string text;
  Compare op = Compare::eq;
  std::string left, right;
};

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
  /// Guards that the program checks. An equality narrows the range of its symbol, if it has one.
  std::vector<FxGuard> guards = {};
  /// Reads, writes and aliases of ops that are not PyTorch's own: by target, a line in the format
  /// of torch_schemas.txt.
  std::map<std::string, std::string, std::less<>> schemas = {};
  /// Keeps calls that read program state, as attention reads its cache, as calls of the program.
  bool keep_stateful = false;
  /// Keeps calls without an effect and those that no output reads: a pass inside a compiler changes
  /// its caller's calls, so that each of them matters.
  bool keep_idle = false;
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
  std::map<std::string, int> dropped;      ///< calls that compute nothing, with counts
  std::map<std::string, int> unread;       ///< calls that no output reads, with counts
  std::vector<std::string> notes;          ///< unknown facts, a line each
  SizeConditions checked;                  ///< conditions of the program that a run checks
  std::vector<std::string> unchecked;      ///< conditions of the program that no run checks
  /// Inputs whose kind the dump does not state, with the guessed kind.
  std::vector<std::pair<std::string, InputKind>> guessed;
  std::size_t nodes = 0;
  /// Names of the dump that refer to another value of the graph: from a view that changes nothing.
  std::map<std::string, std::string> aliases;
};

struct ReadGraph {
  Graph graph;
  std::optional<FxReport> dump;  ///< of an FX dump: what its import did
};

struct WrittenGraph {
  std::string bytes;
  std::vector<std::string> custom;  ///< ops that the format lacks, sorted
};

/// A form of graphs, as the library that reads it describes it. What a form lacks is null.
struct GraphFormat {
  std::string_view name;  ///< for people: "graph.json"
  bool (*recognise)(std::string_view text);
  /// `options.file` names the text in messages; the rest is what an FX dump does not say itself.
  Result<ReadGraph> (*read)(const ContextPtr& context, const std::string& text,
                            const FxOptions& options);
  /// Small texts of this form, of which random mutants are read in tests.
  std::vector<std::string> (*examples)() = nullptr;
  /// Returns the tensors in a file of this form as safetensors; `number` chooses one of its models,
  /// from 1.
  Result<std::string> (*tensors)(std::string_view bytes, const std::string& file,
                                 std::size_t number) = nullptr;
  std::string_view extension = {};  ///< of files that `write` writes: ".onnx"
  Result<WrittenGraph> (*write)(const Graph& graph) = nullptr;
  std::string_view mistaken = {};  ///< words for such a text where rules belong: "a dump of …"
  /// Returns the names that this form has for each op: those of `foreign`, unless it is null, and
  /// those that the reader converts itself.
  std::map<std::string, std::set<std::string>> (*foreign_names)(const ForeignOps* foreign) =
      nullptr;
};

}  // namespace pw
