// Checked rules, ready for the rewriter: names resolved, families expanded, precedence closed.
// check() builds them from files.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/special_members.hpp"
#include "dsl/syntax/ast.hpp"
#include "graph/build.hpp"

namespace pw {

using RuleId = Id<struct RuleTag>;
using PatternNodeId = Id<struct PatternNodeTag>;
using PatternValueId = Id<struct PatternValueTag>;
using MembersId = Id<struct MembersTag>;

/// A value of a pattern: a free input of it, a result of one of its nodes, or a constant.
struct PatternValue {
  PW_SPECIAL_MEMBERS(PatternValue);
  std::string name;  ///< empty or "_": unnamed
  Span span;
  PatternNodeId producer;  ///< invalid: free, or a constant
  int result = 0;
  std::optional<Attribute>
      literal;                ///< a number as an operand: matches a `constant` node of that value
  bool optional = false;      ///< `name?`: binds none too
  bool literal_none = false;  ///< `none` as an operand
  bool attribute_variable = false;  ///< free in operand place and used as an attribute elsewhere:
                                    ///< binds a constant's value
  bool list = false;  ///< an element a member, or the rest of a variadic op's operands or results
  std::vector<TypeExpr> types;  ///< all annotations, in text order
};

struct PatternAttribute {
  std::string name;
  Span span;
  Expr value;  ///< `{eps}` is a path of the same name
};

struct PatternNode {
  PW_SPECIAL_MEMBERS(PatternNode);
  OpId op;
  Span span;
  std::vector<PatternValueId> operands;
  std::vector<PatternValueId> results;  ///< as many as the op has; unnamed ones exist too
  std::vector<PatternAttribute> attributes;
  bool open = false;   ///< `..`
  bool given = false;  ///< context: survives, may have other users, is never consumed
  MembersId members;   ///< matched once for each member of these; invalid: matched once
  int negation = -1;   ///< index in Rule::unless; -1: part of the match
  /// Returns true if the rule replaces the node's match.
  [[nodiscard]] bool own() const { return !given && negation < 0; }
};

/// A part of the pattern that is matched several times: `many y = mm(x, w)`, once for each user
/// that fits, or `cat(relu(x)...)`, once for each operand. Names in Rule::lists get one element for
/// each member, in order; all others are equal over the members.
struct Members {
  enum class Kind : std::uint8_t { many, operands } kind = Kind::many;
  Span span;
  PatternNodeId root;                ///< the node that is found first in each member
  std::vector<PatternNodeId> nodes;  ///< of one member, in text order, root included
  PatternNodeId reader;              ///< operands: the node that reads the roots' results
};

/// Condition `unless { … }`: a match is refused if these nodes can be found as well.
struct Negation {
  Span span;
  std::vector<PatternNodeId> nodes;
};

struct Rule {
  PW_SPECIAL_MEMBERS(Rule);
  std::string name;       ///< full: "group.rule", "rms_quant_dyn[token]"
  std::string base_name;  ///< as written: "rms_quant_dyn"
  std::string group;      ///< enclosing group or empty
  std::string row;  ///< "dyn[token]" of `dyn[token_relu]`, which an op variable made; or empty
  Span span;        ///< the whole rule
  Span name_span;
  int rank = 0;  ///< by name in the rule set; breaks ties deterministically
  IdVec<PatternNodeId, PatternNode>
      nodes;  ///< in text order, operands before users; sub-expressions flattened
  IdVec<PatternValueId, PatternValue> values;
  IdVec<MembersId, Members> members;
  std::vector<Negation> unless;
  std::set<std::string, std::less<>> lists;  ///< names that stand for a list
  std::vector<Expr> where;                   ///< must be provable
  std::vector<Expr> assume;  ///< holds unless refuted; then a condition of the token range
  std::vector<Statement> replacement;
  /// Names bound on both sides: users of the matched value are redirected to the new definition.
  std::vector<std::string> outputs;
  /// Values bound by non-given nodes and not outputs: they disappear, and have no user outside the
  /// match.
  std::vector<PatternValueId> consumed;
  std::vector<RuleId> over;  ///< transitively closed
  Env constants;  ///< table cells of the variant, as `k.group`; params are added at match time
  /// True if a use of a recursive pattern is still closed: if the rest matches, the variants one
  /// level deeper are tried. Such a rule is never applied itself.
  bool frontier = false;
  /// Data for `y... = fuse`: the op on the right has the number of members in its name.
  std::shared_ptr<const struct FusedLists> fused;
  std::shared_ptr<const struct ClosedRule> closed;  ///< of a frontier: what RunRules::open() opens
  [[nodiscard]] PatternValueId value_named(std::string_view name) const;
};

/// A resolved strategy tree.
struct Strategy {
  PW_SPECIAL_MEMBERS(Strategy);
  ast::Strategy::Kind kind = ast::Strategy::Kind::sequence;
  Span span;
  std::string label;          ///< the pass's name, or a printed form for an anonymous one
  std::vector<RuleId> rules;  ///< greedy, once, walk; sorted by rank
  std::string builtin;        ///< a reference to a built-in pass: dce, cse
  std::vector<Strategy> parts;
  std::optional<std::int64_t> fuel;
  std::vector<Expr> when;                     ///< none or one
  std::vector<Expr> ensures;                  ///< of atomic: none or one
  std::string by;                             ///< of best: the cost that decides
  std::optional<std::int64_t> nodes, rounds;  ///< limits of saturate
  std::string cost;                           ///< the cost that extraction minimises
  std::vector<std::int64_t> ranges;  ///< of a pipeline: the last number of tokens of each range
};

struct Param {
  std::string name;
  Span span;
  AttributeKind kind = AttributeKind::int_;
  Attribute value;
};

struct SplitRule {
  std::string name;
  struct At {
    std::vector<OpId> ops;
    std::vector<Expr> when;
  };
  std::vector<At> at;
};

struct CaptureDefaults {
  std::vector<std::int64_t> sizes;  ///< empty: not stated
  std::string mode;
};

struct RuleSet {
  PW_SPECIAL_MEMBERS(RuleSet);
  ContextPtr context;
  std::vector<ast::File> files;  ///< in load order, used files first; tests are read from here
  IdVec<RuleId, Rule> rules;     ///< in source order, rank assigned by name
  std::map<std::string, Strategy> passes;
  std::map<std::string, Strategy> pipelines;
  std::map<std::string, Strategy>
      implicit;  ///< `dce`, `cse`, and `greedy { r }` of every rule, family and group, by name
  std::map<std::string, Param> params;
  std::vector<SplitRule> splits;
  CaptureDefaults capture;
  Diagnostics warnings;

  /// Returns the rules of a reference: a rule, `group.*`, `family[*]`, `family[row]`, a family's or
  /// group's name. Empty: unknown.
  [[nodiscard]] std::vector<RuleId> resolve(std::string_view reference) const;
  /// Returns the strategy of a name: a pipeline, a pass, a built-in pass, or a rule, family or
  /// group, which is run greedily.
  [[nodiscard]] const Strategy* strategy(std::string_view name) const;
};

/// Returns parameter values for one run: defaults of the rule set, overridden by `-D name=value`.
/// Diagnoses unknown names, kinds.
Result<Env> bind_params(const RuleSet& rules,
                        const std::vector<std::pair<std::string, std::string>>& definitions);

}  // namespace pw
