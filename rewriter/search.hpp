// One backtracking search: a rule against one anchor node. Every gate of the semantics is a method
// here; the first gate that rejects the attempt that came furthest is kept as the reason.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "rewriter/layout.hpp"
#include "rewriter/matcher.hpp"

namespace pw {

/// How far the best failed attempt came, and why it ended. Text is made only when asked for.
struct Failure {
  int matched = -1;
  int gate = -1;  ///< gates passed at the node, or after the last node
  const char* code = "";
  std::string message;
  Span span;
  NodeId at;
  std::vector<NodeId> nodes;  ///< matched by then, by PatternNodeId
  [[nodiscard]] bool any() const { return matched >= 0; }
};

class Search {
 public:
  /// `base` is starting_env(); `explain` asks for messages.
  Search(const Graph& graph, const RuleLayout& layout, const Env& base, bool explain);

  /// Calls `found` for each way to match, in the written order of choices, until it returns false.
  /// A frontier never matches here, but see look_for_frontiers().
  void run(NodeId anchor, const std::function<bool(const Match&)>& found);
  /// Frontiers are found too, by their nodes, operands, types and attributes.
  void look_for_frontiers() { frontiers_ = true; }
  /// The same, where each pattern node that is matched once must be the node given at its
  /// PatternNodeId; an invalid one is free to search. Swaps, lists and `unless` are searched.
  void run_fixed(std::span<const NodeId> nodes, const std::function<bool(const Match&)>& found);
  [[nodiscard]] const Failure& furthest() const { return failure_; }

 private:
  enum class Bound : std::uint8_t { no, value, none };
  /// A check that waits for a variable.
  struct Deferred {
    PatternNodeId node;  ///< of the attribute, else invalid
    std::size_t attribute = 0;
    PatternValueId value;  ///< of the type
    std::size_t type = 0;
  };
  struct State {
    IdVec<PatternNodeId, NodeId> nodes;
    IdVec<PatternValueId, ValueId> values;
    IdVec<PatternValueId, Bound> bound;
    Env env;
    std::vector<Deferred> deferred;
    int matched = 0;
    int gate = 0;
  };
  using Text = std::function<std::string()>;

  // Walking (search.cpp).
  void start(NodeId anchor);
  [[nodiscard]] std::vector<NodeId> anchors_of(std::span<const NodeId> nodes) const;
  [[nodiscard]] NodeId fixed(PatternNodeId id) const {
    return fixed_.empty() ? NodeId() : fixed_[id.index];
  }
  bool extend(std::size_t step, State& state);
  bool try_node(std::size_t step, NodeId node, const State& state);
  bool finish(State& state);
  [[nodiscard]] std::vector<NodeId> users_to_try(const Step& step, const State& state) const;
  void reject_users(const Step& step, const State& state);
  bool check_op(const Step& step, NodeId node, State& state);
  bool check_arity(PatternNodeId id, NodeId node, State& state);

  // Values (search_values.cpp).
  bool bind_operands(PatternNodeId id, NodeId node, bool swapped, State& state);
  bool bind_operand(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at, State& state);
  bool bind_none(PatternNodeId id, NodeId node, std::size_t slot, State& state);
  bool bind_constant(PatternNodeId id, NodeId node, std::size_t slot, ValueId value, State& state);
  bool bind_results(PatternNodeId id, NodeId node, State& state);
  bool check_types(PatternValueId id, NodeId node, State& state);
  bool check_type(PatternValueId id, std::size_t type, NodeId node, State& state, bool last);

  // Attributes (search_attributes.cpp).
  bool match_attributes(PatternNodeId id, NodeId node, State& state);
  bool match_written(PatternNodeId id, std::size_t index, NodeId node, State& state, bool last);
  enum class Fit : std::uint8_t { no, yes, conflict, later };
  Fit fit(const Expr& expr, const Attribute& value, AttributeKind kind, int rank, State& state,
          std::string* expected);
  Fit fit_list(const Expr& expr, const std::vector<DimId>& dims, State& state,
               std::string* expected);
  Fit fit_name(const std::string& name, const Attribute& value, State& state,
               std::string* expected);
  bool run_deferred(State& state);

  // After the last node (search_gates.cpp).
  bool check_closed(State& state);
  bool check_where(State& state);
  bool check_convex(State& state);

  bool reject(const State& state, const char* code, Span span, NodeId at, const Text& text);
  [[nodiscard]] std::string shown(PatternValueId id, ValueId value) const;
  [[nodiscard]] std::string shown(NodeId node) const;
  [[nodiscard]] Context& context() const { return graph_.context(); }

  const Graph& graph_;
  const RuleLayout& layout_;
  const Rule& rule_;
  const Env& base_;
  bool explain_;
  bool frontiers_ = false;
  Failure failure_;
  std::span<const NodeId> fixed_;  ///< empty: all are free
  const std::function<bool(const Match&)>* found_ = nullptr;
};

/// Whether every name in the expression is bound (or is a dtype's).
bool all_bound(const Expr& expr, const Env& env);
/// The unbound names in it, sorted.
std::set<std::string> unbound_names(const Expr& expr, const Env& env);
/// What an environment holds as an attribute: dims, dtypes, sequences too. None for values.
std::optional<Attribute> as_attribute(Context& context, const Binding& binding);
/// Equality where ints, reals and booleans compare as numbers.
bool same_attribute(const Attribute& a, const Attribute& b);

}  // namespace pw
