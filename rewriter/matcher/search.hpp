// One backtracking search: a rule against one anchor node. Every gate of the semantics is a method
// here. The first gate that refused the attempt that reached furthest is kept as the reason (N01 to
// N09, N13).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
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

class Search {
 public:
  /// Creates a search. `base` is starting_env(); `explain` requests messages.
  Search(const Graph& graph, const RuleLayout& layout, const Env& base, bool explain);

  /// Calls `found` for each match, in the written order of choices, until it returns false. A
  /// frontier never matches here, but see look_for_frontiers().
  void run(NodeId anchor, const std::function<bool(const Match&)>& found);
  /// Limits the number of nodes tried in a run: orders of operands multiply.
  void limit_steps(std::uint64_t most) { most_steps_ = most; }
  /// Matches up to equality, and removes nothing. Nodes in `left_out` are not members of `many`; of
  /// members with equal results the first counts.
  void match_equal(const EGraph& equal, const std::unordered_set<NodeId>& left_out) {
    equal_ = &equal;
    left_out_ = &left_out;
  }
  /// Makes frontiers match too, by their nodes, operands, types and attributes.
  void look_for_frontiers() { frontiers_ = true; }
  /// Searches with each pattern node that is matched once fixed to the node at its PatternNodeId;
  /// an invalid one is free. Swaps, lists and `unless` are searched.
  void run_fixed(std::span<const NodeId> nodes, const std::function<bool(const Match&)>& found);
  [[nodiscard]] const Failure& furthest() const { return failure_; }
  /// Returns the nodes on paths that forbade a match, or excluded a member, since the run began. If
  /// one of them is erased or reads something else, there may be another match.
  [[nodiscard]] const std::vector<NodeId>& in_the_way() const { return in_the_way_; }
  /// Discards cached members; called after each mutation of the graph. Caching lets many attempts
  /// at one list cost no more than one.
  void graph_changed() {
    if (!groups_at_.empty()) groups_at_ = {};
  }

 private:
  enum class Bound : std::uint8_t { no, value, none };
  /// A check that waits for a variable.
  struct Deferred {
    PatternNodeId node;  ///< of the attribute, else invalid
    std::size_t attribute = 0;
    PatternValueId value;  ///< of the type
    std::size_t type = 0;
  };
  using List = std::shared_ptr<const std::vector<ValueId>>;
  struct State {
    IdVec<PatternNodeId, NodeId> nodes;  ///< invalid for those of members, but while one is tried
    IdVec<PatternValueId, ValueId> values;  ///< not of lists
    IdVec<PatternValueId, Bound> bound;
    IdVec<PatternValueId, List> lists;  ///< of `xs...`; empty where the rule has none
    IdVec<MembersId, GroupPtr> groups;
    Env env;  ///< lists of values only come in at the end
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
  State first_state() const;
  bool extend(std::size_t step, State& state);
  bool extend_equal(std::size_t step, ValueId value, State& state);
  [[nodiscard]] bool same(ValueId a, ValueId b) const;
  [[nodiscard]] bool same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const;
  [[nodiscard]] std::vector<NodeId> producers(ValueId value) const;
  bool try_node(std::size_t step, NodeId node, const State& state);
  bool admit(const SearchStep& step, NodeId node, State& state);
  bool bind_node(PatternNodeId id, NodeId node, bool swapped, State& state);
  [[nodiscard]] bool commutes(PatternNodeId id, NodeId node) const;
  [[nodiscard]] bool is_taken(PatternNodeId id, NodeId node, const State& state) const;
  [[nodiscard]] bool has_output(PatternNodeId id) const;
  bool finish(State& state);
  bool report(const Match& match) { return ++reported_, (*found_)(match); }
  bool split_shape(const State& before);
  [[nodiscard]] std::optional<std::size_t> list_at(PatternNodeId id) const;
  [[nodiscard]] ValueId connector_of(const SearchStep& step, const State& state) const;
  [[nodiscard]] std::vector<NodeId> users_to_try(const SearchStep& step, const State& state) const;
  void reject_users(const SearchStep& step, const State& state);
  bool check_op(const SearchStep& step, NodeId node, State& state);
  bool check_arity(PatternNodeId id, NodeId node, State& state);

  // Members of lists (search_members.cpp).
  struct Mark;
  using Fits = std::function<bool()>;
  void start_members(NodeId anchor);
  /// The groups at one value, by the node that makes an anchor one of them.
  struct Groups {
    std::unordered_map<NodeId, std::vector<GroupPtr>> by_first;  ///< looked up only
    std::vector<GroupPtr> open;  ///< that the rest of the pattern may change: any member may do
  };
  const Groups& groups_at(ValueId common, MembersId id);
  [[nodiscard]] std::size_t root_place(MembersId id) const;
  [[nodiscard]] bool settled(MembersId id, const Group& group) const;
  void bind_common(MembersId id, ValueId common, State& state) const;
  bool extend_members(std::size_t step, State& state);
  std::vector<GroupPtr> read_members(const SearchStep& step, State& state);
  std::vector<GroupPtr> own_members(const SearchStep& step, State& state);
  std::vector<GroupPtr> used_members(const SearchStep& step, State& state);
  /// Candidate nodes for the root of each member; several only if values may be equal.
  using Roots = std::vector<std::vector<NodeId>>;
  [[nodiscard]] Roots roots_of_users(const SearchStep& step, const State& state) const;
  [[nodiscard]] std::string common_key(MembersId id, const std::vector<PatternValueId>& values,
                                       const std::vector<const std::string*>& names,
                                       const State& state) const;
  std::vector<GroupPtr> collect(MembersId id, const Roots& roots, bool last, State& state);
  bool member_node(MembersId id, std::size_t step, NodeId node, State& state, const Fits& fits);
  bool settle(std::size_t from, bool last, State& state, bool* open);
  Mark mark(std::span<const PatternNodeId> ids, const State& state) const;
  static void undo(const Mark& mark, State& state);
  void drop_dependents(MembersId id, Group& group) const;
  void drop_equals(MembersId id, Group& group) const;
  static void keep_members(Group& group, const std::vector<bool>& kept);
  void note_way(const Group& group) {
    in_the_way_.insert(in_the_way_.end(), group.in_the_way.begin(), group.in_the_way.end());
  }
  static void bind_group(const Group& group, State& state);
  bool bind_lists(State& state);
  bool check_read(const State& state, const Match& match);
  void list_members(const State& state, Match& match) const;

  // Values (search_values.cpp).
  bool bind_operands(PatternNodeId id, NodeId node, bool swapped, State& state);
  [[nodiscard]] bool may_come_from(const PatternValue& wanted, ValueId value) const;
  bool bind_operand(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at, State& state);
  bool bind_list(PatternValueId id, NodeId node, std::vector<ValueId> values, State& state);
  bool bind_none(PatternNodeId id, NodeId node, std::size_t slot, State& state);
  bool bind_constant(PatternNodeId id, NodeId node, std::size_t slot, std::size_t at, State& state);
  bool reads_number(const Attribute& wanted, NodeId node, std::size_t at, NodeId constant) const;
  [[nodiscard]] NodeId literal_of(ValueId value) const;
  bool bind_results(PatternNodeId id, NodeId node, State& state);
  bool check_types(PatternValueId id, NodeId node, State& state);
  bool check_type(PatternValueId id, std::size_t type, NodeId node, State& state, bool last);
  bool check_type_of(ValueId value, PatternValueId id, std::size_t type, NodeId node, State& state,
                     bool last);
  bool check_unknown(ValueId value, PatternValueId id, const TypeExpr& wanted, NodeId node,
                     State& state);

  // Attributes (search_attributes.cpp).
  bool match_attributes(PatternNodeId id, NodeId node, State& state);
  bool match_written(PatternNodeId id, std::size_t index, NodeId node, State& state, bool last);
  enum class Fit : std::uint8_t { no, yes, conflict, later };
  struct Written {  ///< an attribute that the pattern states, at a node
    NodeId node;
    std::string_view attribute;
  };
  [[nodiscard]] std::optional<std::string_view> counterpart(PatternNodeId id,
                                                            const PatternAttribute& wanted,
                                                            NodeId node, const State& state,
                                                            bool last) const;
  [[nodiscard]] bool shares_names(PatternNodeId id,
                                  std::initializer_list<std::string_view> attributes,
                                  const State& state) const;
  [[nodiscard]] std::optional<Attribute> known_value(PatternNodeId id, std::string_view attribute,
                                                     NodeId node, const State& state) const;
  Fit fit(const Written& written, const Expr& expr, const Attribute& value, State& state,
          std::string* expected);
  Fit fit_list(const Expr& expr, const std::vector<DimId>& dims, State& state,
               std::string* expected);
  Fit fit_name(const std::string& name, const Attribute& value, State& state,
               std::string* expected);
  Fit fit_repetition(const Expr& expr, const std::vector<DimId>& dims, State& state,
                     std::string* expected);
  Fit fit_rest(const Expr& expr, const Attribute& value, State& state, std::string* expected);
  bool run_deferred(State& state, bool last);
  [[nodiscard]] bool may_split(const Deferred& deferred, const State& state) const;

  // After the last node (search_gates.cpp).
  bool check_closed(State& state, const Match& match);
  bool check_where(State& state);
  bool check_assume(State& state, Match& match);
  bool check_absent(State& state);
  bool is_there(const std::vector<SearchStep>& steps, std::size_t step, const State& state,
                NodeId& last);
  [[nodiscard]] std::vector<NodeId> candidates(const SearchStep& step, const State& state) const;
  bool check_convex(State& state, const Match& match);
  static std::vector<ValueId> values_of(const std::string& name, const State& state);

  bool reject(const State& state, const char* code, Span span, NodeId at, const Text& text,
              std::string_view help = {});
  [[nodiscard]] bool is_behind_views(NodeId node, OpId wanted) const;
  [[nodiscard]] std::string shown(PatternValueId id, ValueId value) const;
  [[nodiscard]] std::string shown(NodeId node) const;
  [[nodiscard]] Context& context() const { return graph_.context(); }

  const Graph& graph_;
  const RuleLayout& layout_;
  const Rule& rule_;
  const Env& base_;
  const EGraph* equal_ = nullptr;                         ///< null: a value equals only itself
  const std::unordered_set<NodeId>* left_out_ = nullptr;  ///< set if equal_ is
  bool explain_;
  bool frontiers_ = false;
  Failure failure_;
  std::vector<NodeId> in_the_way_;
  std::span<const NodeId> fixed_;  ///< empty: all are free
  NodeId anchor_;
  std::uint64_t steps_ = 0;  ///< nodes tried since the run began
  std::uint64_t most_steps_ = std::uint64_t{1} << 17;
  bool quiet_ = false;  ///< failures are not recorded: what must be absent is searched for
  GroupPtr anchored_;   ///< the members that include the anchor
  std::unordered_map<ValueId, Groups> groups_at_;  ///< by the value in common; looked up only
  const std::function<bool(const Match&)>* found_ = nullptr;
  std::uint64_t reported_ = 0;  ///< matches
};

/// Returns true if every name in the expression is bound, or is a dtype.
bool all_bound(const Expr& expr, const Env& env);
/// Returns the unbound names in it, sorted.
std::set<std::string> unbound_names(const Expr& expr, const Env& env);
/// Returns the number of sequences of the shape whose length is unknown.
std::size_t open_sequences(const TypeExpr& type, const Env& env);
/// Returns a binding as an attribute: dims, dtypes, sequences too. None for values.
std::optional<Attribute> as_attribute(Context& context, const Binding& binding);
/// Returns the number of an int, a real or a boolean.
std::optional<double> as_number(const Attribute& value);
/// Compares attributes; ints, reals and booleans compare as numbers.
bool same_attribute(const Attribute& a, const Attribute& b);

}  // namespace pw
