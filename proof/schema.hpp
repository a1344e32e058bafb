// The most general graphs that a rule matches. Sizes are symbols, `*b` is one axis of unknown
// extent, and each dtype, flag, and absent operand that the pattern admits is a separate case. Both
// sides of the rule share one graph.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "proof/choices.hpp"
#include "proof/integers/integers.hpp"
#include "rewriter/matcher/matcher.hpp"

namespace pw::proof {

/// One output of the rule: its value before the rewrite and after it, which the proof compares.
struct SchemaOutput {
  std::string name;
  ValueId before, after;
};
/// A guard that became a fact, so that the proof can report which guards it needed.
struct SchemaGuard {
  std::string text;
  std::size_t fact = 0;  ///< the number of the fact in the integers
};
struct Schema {
  Graph graph;  ///< its outputs are the left sides', then the right sides'
  Env env;
  std::vector<SchemaOutput> outputs;
  std::vector<NodeId> replaced;  ///< nodes of the left side that the rule replaces
  std::vector<NodeId> fresh;     ///< nodes of the right side
  std::vector<SchemaGuard> guards;
  std::set<std::string> solved;  ///< guards used to choose sizes
  std::size_t any_dtypes = 0;    ///< variables that represent any dtype
};

struct SchemaOptions {
  std::size_t lists = 2;  ///< length of each list
  /// Assigns a distinct dtype to each variable that no guard constrains, avoiding dtypes named in
  /// bodies. Two assignments exist so that dtypes that promote do so differently in each. If both
  /// prove the same ops on the same elements, the result holds for all dtypes.
  enum class AnyDType : std::uint8_t { no, one_way, other_way } any_dtype = AnyDType::no;
};

/// Prints the shapes of a graph's inputs.
[[nodiscard]] std::string shapes_of(const Graph& graph);

/// The reason why a case has no schema: it is not well typed, or the rule does not match or apply.
struct NoSchema {
  std::string why;
  bool mistyped = false;    ///< the left side has no such types: there is nothing to prove
  bool undecided = false;   ///< it is not known whether the left side is well typed
  std::string shapes = {};  ///< shapes of the inputs, if sizes may be the cause
};

/// Builds the case that the choices select. `unguarded` holds the rules without their guards. Size
/// guards become facts of the integers, which belong to this case alone.
tl::expected<Schema, NoSchema> make_schema(const RuleSet& rules, const RuleSet& unguarded,
                                           RuleId rule, const Env& params, Choices& choices,
                                           Integers& integers, const SchemaOptions& options,
                                           std::set<std::string>& granted);

}  // namespace pw::proof
