// Shared by the parts of a backtracking search: its subject, the state that it extends, and the
// best failed attempt.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rewriter/matcher/matcher.hpp"
#include "rewriter/strategies/layout.hpp"

namespace pw {

class EGraph;

/// Progress of the best failed attempt, and the reason of its failure. Messages are built on
/// request only.
struct Failure {
  int matched = -1;
  int gate = -1;  ///< gates passed at the node, or after the last node
  const char* code = "";
  std::string message;
  Span span;
  NodeId at;
  std::vector<NodeId> nodes;  ///< matched by then, by PatternNodeId
  std::string_view help;      ///< of this failure; empty: that of its code
  [[nodiscard]] bool any() const { return matched >= 0; }
};

/// The members of one list that agree on everything they have in common.
struct Group {
  std::size_t width = 1;       ///< nodes of a member
  std::vector<NodeId> nodes;   ///< member after member, each in the order of Members::nodes
  std::vector<Binding> lists;  ///< the same of MembersLayout::lists
  std::vector<std::pair<PatternValueId, ValueId>> values;  ///< in common; invalid: none
  std::vector<std::pair<std::string, Binding>> names;      ///< in common
  std::vector<NodeId> sorted;                              ///< the nodes by id
  std::vector<NodeId> in_the_way;                          ///< on paths to omitted members
  bool open = false;  ///< a check still waits for names that the rest of the pattern binds
  [[nodiscard]] std::size_t size() const { return nodes.size() / width; }
  [[nodiscard]] NodeId root(std::size_t i, std::size_t at) const { return nodes[i * width + at]; }
};
using GroupPtr = std::shared_ptr<const Group>;

/// Partial match.
struct SearchState {
  enum class Bound : std::uint8_t { no, value, none };
  /// A check that waits for a variable.
  struct Deferred {
    PatternNodeId node;  ///< of the attribute, else invalid
    std::size_t attribute = 0;
    PatternValueId value;  ///< of the type
    std::size_t type = 0;
  };
  using List = std::shared_ptr<const std::vector<ValueId>>;
  IdVec<PatternNodeId, NodeId> nodes;     ///< invalid for those of members, but while one is tried
  IdVec<PatternValueId, ValueId> values;  ///< not of lists
  IdVec<PatternValueId, Bound> bound;
  IdVec<PatternValueId, List> lists;  ///< of `xs...`; empty where the rule has none
  IdVec<MembersId, GroupPtr> groups;
  Env env;  ///< lists of values only come in at the end
  std::vector<Deferred> deferred;
  int matched = 0;
  int gate = 0;
};

struct SearchScope {
  using Text = std::function<std::string()>;

  SearchScope(const Graph& of, const RuleLayout& rule_layout, const Env& starting_env,
              bool with_messages)
      : graph(of),
        layout(rule_layout),
        rule(*rule_layout.rule),
        base(starting_env),
        explain(with_messages) {}

  const Graph& graph;
  const RuleLayout& layout;
  const Rule& rule;
  const Env& base;
  const bool explain;                                    ///< messages are requested
  const EGraph* equal = nullptr;                         ///< null: a value equals only itself
  const std::unordered_set<NodeId>* left_out = nullptr;  ///< set if equal is
  Failure failure;
  std::vector<NodeId> in_the_way;  ///< on paths that forbade a match, or excluded a member
  NodeId anchor;
  bool quiet = false;  ///< failures are not recorded: what must be absent is searched for

  [[nodiscard]] SearchState first_state() const;
  /// Records a failure if its attempt reached further than all before. Returns false.
  bool reject(const SearchState& state, const char* code, Span span, NodeId at, const Text& text,
              std::string_view help = {});
  [[nodiscard]] bool same(ValueId a, ValueId b) const;
  [[nodiscard]] bool same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const;
  /// Returns the node that computes the value, or one of each form that does; none for an input.
  [[nodiscard]] std::vector<NodeId> producers(ValueId value) const;
  /// Returns the operand slot of a list, of which a node has any number.
  [[nodiscard]] std::optional<std::size_t> list_at(PatternNodeId id) const;
  [[nodiscard]] std::string shown(PatternValueId id, ValueId value) const;
  [[nodiscard]] std::string shown(NodeId node) const;
  [[nodiscard]] Context& context() const { return graph.context(); }
};

/// The members of a scope that each part of a search reads most.
class SearchPart {
 protected:
  explicit SearchPart(SearchScope& scope)
      : scope_(scope), graph_(scope.graph), layout_(scope.layout), rule_(scope.rule) {}

  SearchScope& scope_;
  const Graph& graph_;
  const RuleLayout& layout_;
  const Rule& rule_;
};

}  // namespace pw
