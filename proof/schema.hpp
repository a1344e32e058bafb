// The most general graphs that a rule matches: sizes are symbols, `*b` is one axis of unknown
// extent, and each dtype, flag and absent operand that the pattern admits is a case. The right side
// stands in the same graph.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "proof/choices.hpp"
#include "proof/integers.hpp"
#include "rewriter/matcher/matcher.hpp"

namespace pw::proof {

struct SchemaOutput {
  std::string name;
  ValueId before, after;
};
struct SchemaGuard {
  std::string text;
  std::size_t fact = 0;  ///< its number in the integers' facts
};
struct Schema {
  Graph graph;  ///< its outputs are all before, then all after
  Env env;
  std::vector<SchemaOutput> outputs;
  std::vector<NodeId> replaced;  ///< nodes of the left side that the rule replaces
  std::vector<NodeId> fresh;     ///< nodes of the right side
  std::vector<SchemaGuard> guards;
  std::set<std::string> solved;  ///< guards that sizes were chosen by
  std::size_t any_dtypes = 0;    ///< variables that stand for any dtype
};

struct SchemaOptions {
  std::size_t lists = 2;  ///< elements of each list
  /// One dtype of its own for each variable that no guard speaks of, none that bodies name, in one
  /// of two ways, so that two dtypes that promote do not come to the same in both. What is the same
  /// ops of the same elements in both, is for all dtypes.
  enum class AnyDType : std::uint8_t { no, one_way, other_way } any_dtype = AnyDType::no;
};

/// The shapes of a graph's inputs, as text.
[[nodiscard]] std::string shapes_of(const Graph& graph);

/// Why a case is none: it is not well typed, or the rule does not match or apply there.
struct NoSchema {
  std::string why;
  bool mistyped = false;    ///< before the whole left side stood
  std::string shapes = {};  ///< of the inputs, where sizes may be why
};

/// The case that the choices lead to. `unguarded` are the rules without their guards; what a guard
/// says of sizes becomes a fact of the integers, which are those of this case alone.
tl::expected<Schema, NoSchema> make_schema(const RuleSet& rules, const RuleSet& unguarded,
                                           RuleId rule, const Env& params, Choices& choices,
                                           Integers& integers, const SchemaOptions& options,
                                           std::set<std::string>& granted);

}  // namespace pw::proof
