// Subgraph matching by backtracking: the walk from the anchor along the pattern, and the gates of
// op and arity.
//
// Nodes are visited in the order of RuleLayout::steps. Each is reached from an earlier one: as the
// producer of a known value, which leaves no choice; as one of its users, all of which are tried;
// or as the root of the members of a list. Operands of commutative ops are tried in the written
// order, then exchanged. Invariant: a State is copied at each choice, so backtracking is a return.
// Exponential in the worst case, and bounded by a number of steps for each anchor (PW1113).
#include "rewriter/matcher/search.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rewriter/egraph/egraph.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/engine/written_names.hpp"

namespace pw {
namespace {

constexpr std::string_view kInput =
    "no node of the graph computes this value: a pattern matches here only if it takes the value "
    "as given";
constexpr std::string_view kNoUser =
    "no node reads the value this way: remove the op from the pattern, or write a rule for the ops "
    "that read it";
constexpr std::string_view kView =
    "a view is in between: use `views(…)` or an optional node to match it";

}  // namespace

Search::Search(const Graph& graph, const RuleLayout& layout, const Env& base, bool explain)
    : graph_(graph), layout_(layout), rule_(*layout.rule), base_(base), explain_(explain) {}

void Search::run(NodeId anchor, const std::function<bool(const Match&)>& found) {
  failure_ = {};
  steps_ = 0;
  in_the_way_.clear();
  found_ = &found;
  start(anchor);
}

void Search::run_fixed(std::span<const NodeId> nodes,
                       const std::function<bool(const Match&)>& found) {
  failure_ = {};
  steps_ = 0;
  in_the_way_.clear();
  bool more = true;
  std::function<bool(const Match&)> until = [&](const Match& match) { return more = found(match); };
  found_ = &until;
  fixed_ = nodes;
  for (NodeId anchor : anchors_of(nodes)) {
    if (!more) break;
    start(anchor);
  }
  fixed_ = {};
}

/// Returns the given anchor; else those on the way back from a given node; else all nodes.
std::vector<NodeId> Search::anchors_of(std::span<const NodeId> nodes) const {
  PatternNodeId anchor = anchor_of(rule_);
  if (!anchor.valid()) return {};
  if (nodes[anchor.index].valid()) return {nodes[anchor.index]};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].valid())
      return nodes_back(graph_, rule_, layout_.way_back[PatternNodeId(i)], nodes[i]);
  std::vector<NodeId> out;
  for (NodeId n = graph_.first(); n.valid(); n = graph_.next(n))
    if (graph_.op(n) == rule_.nodes[anchor].op) out.push_back(n);
  return out;
}

Search::State Search::first_state() const {
  State state;
  state.nodes.resize(rule_.nodes.size());
  state.values.resize(rule_.values.size());
  state.bound.resize(rule_.values.size(), Bound::no);
  if (!rule_.lists.empty() || !rule_.members.empty()) state.lists.resize(rule_.values.size());
  state.groups.resize(rule_.members.size());
  state.env = base_;
  return state;
}

void Search::start(NodeId anchor) {
  if (rule_.frontier && !frontiers_) return;
  anchor_ = anchor;
  State state;
  if (!layout_.connected() || layout_.steps.empty()) {
    reject(state, "N01", rule_.name_span, anchor,
           [] { return std::string("the pattern is not connected"); });
    return;
  }
  if (!check_op(layout_.steps[0], anchor, state)) return;
  if (layout_.steps[0].members.valid()) return start_members(anchor);
  try_node(0, anchor, first_state());
}

/// Extends the state by step `index`. Returns true to continue with other choices, false if the
/// caller wants no more.
bool Search::extend(std::size_t index, State& state) {
  if (index == layout_.steps.size()) return finish(state);
  const SearchStep& step = layout_.steps[index];
  if (step.from == SearchStep::From::members) return extend_members(index, state);
  if (NodeId node = fixed(step.node); node.valid()) return try_node(index, node, state);
  if (step.from == SearchStep::From::producer) {
    ValueId value = connector_of(step, state);
    if (equal_ != nullptr) return extend_equal(index, value, state);
    NodeId node = value.valid() ? graph_.producer(value) : NodeId();
    if (!node.valid()) {
      const PatternNode& wanted = rule_.nodes[step.node];
      const auto text = [&] {
        return fmt::format("%{} is an input of the graph, not a result of `{}`",
                           value.valid() ? graph_.value_name(value) : "none",
                           context().ops[wanted.op].name);
      };
      reject(state, "N01", wanted.span, state.nodes[step.neighbour], text, kInput);
      return true;
    }
    return try_node(index, node, state);
  }
  std::vector<NodeId> users = users_to_try(step, state);
  if (users.empty()) return reject_users(step, state), true;
  for (NodeId user : users)
    if (!try_node(index, user, state)) return false;
  return true;
}

/// Tries each node that computes a value equal to the given one.
bool Search::extend_equal(std::size_t index, ValueId value, State& state) {
  const OpId op = rule_.nodes[layout_.steps[index].node].op;
  for (NodeId node : producers(value))
    if (graph_.op(node) == op && !try_node(index, node, state)) return false;
  return true;
}

bool Search::same(ValueId a, ValueId b) const {
  if (a == b || equal_ == nullptr) return a == b;
  return a.valid() && b.valid() && equal_->same(a, b);
}

bool Search::same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](ValueId x, ValueId y) { return same(x, y); });
}

/// Returns the node that computes the value, or one of each form that does; none for an input.
std::vector<NodeId> Search::producers(ValueId value) const {
  if (!value.valid()) return {};
  if (equal_ != nullptr) return equal_->producers(value);
  if (graph_.is_input(value)) return {};
  return {graph_.producer(value)};
}

/// Rejects the step if no user of a connecting value has the op. Prefers a user of another
/// connecting value, or of another result of the value's node, as the more informative reason.
void Search::reject_users(const SearchStep& step, const State& state) {
  const PatternNode& wanted = rule_.nodes[step.node];
  const std::string& op = context().ops[wanted.op].name;
  const auto value_of = [&](PatternValueId id) {
    bool list = rule_.values[id].list && state.lists[id] && !state.lists[id]->empty();
    return list ? state.lists[id]->front() : state.values[id];
  };
  const auto user_of = [&](ValueId v) {
    for (UseId u = v.valid() ? graph_.first_use(v) : UseId(); u.valid(); u = graph_.next_use(u))
      if (graph_.op(graph_.user(u)) == wanted.op) return graph_.user(u);
    return NodeId();
  };
  PatternValueId via = wanted.operands[static_cast<std::size_t>(step.connectors.front())];
  NodeId reader;
  for (int slot : step.connectors) {
    PatternValueId id = wanted.operands[static_cast<std::size_t>(slot)];
    NodeId user = user_of(value_of(id));
    if (user.valid())
      reader = user;
    else
      via = id;
  }
  ValueId value = value_of(via);
  if (reader.valid()) {
    reject(state, "N07", wanted.span, reader, [&] {
      return fmt::format("{} does not read {}", shown(reader),
                         value.valid() ? shown(via, value) : "none");
    });
    return;
  }
  NodeId at = value.valid() ? graph_.producer(value) : NodeId();
  for (std::size_t i = 0; at.valid() && i < graph_.result_count(at); ++i) {
    NodeId user = user_of(graph_.result(at, i));
    if (!user.valid()) continue;
    reject(state, "N07", wanted.span, user, [&] {
      return fmt::format("{} reads %{}, not {}", shown(user),
                         graph_.value_name(graph_.result(at, i)), shown(via, value));
    });
    return;
  }
  const auto text = [&] {
    return fmt::format("{} has no user that is `{}`", value.valid() ? shown(via, value) : "none",
                       op);
  };
  reject(state, "N01", wanted.span, at.valid() ? at : anchor_, text, kNoUser);
}

/// Returns the bound value that leads to the node: among several operands the one with the fewest
/// users.
ValueId Search::connector_of(const SearchStep& step, const State& state) const {
  const auto value_of = [&](PatternValueId id) {
    if (!rule_.values[id].list) return state.values[id];
    return state.lists[id] && !state.lists[id]->empty() ? state.lists[id]->front() : ValueId();
  };
  if (step.from == SearchStep::From::producer) return value_of(step.via);
  ValueId connector;
  for (int slot : step.connectors) {
    ValueId v = value_of(rule_.nodes[step.node].operands[static_cast<std::size_t>(slot)]);
    if (v.valid() && (!connector.valid() || graph_.use_count(v) < graph_.use_count(connector)))
      connector = v;
  }
  return connector;
}

/// Returns the users of the connecting value that have the right op, in order.
std::vector<NodeId> Search::users_to_try(const SearchStep& step, const State& state) const {
  const PatternNode& node = rule_.nodes[step.node];
  const ValueId connector = connector_of(step, state);
  std::vector<NodeId> out;
  if (!connector.valid()) return out;
  const auto add_users = [&](ValueId v) {
    for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u))
      if (graph_.op(graph_.user(u)) == node.op &&
          (equal_ == nullptr || equal_->is_form(graph_.user(u))))
        out.push_back(graph_.user(u));
  };
  if (equal_ == nullptr) {
    add_users(connector);
  } else {
    for (ValueId member : equal_->members(connector)) add_users(member);
  }
  std::sort(out.begin(), out.end(),
            [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool Search::try_node(std::size_t index, NodeId node, const State& before) {
  if (++steps_ > most_steps_) return false;
  const SearchStep& step = layout_.steps[index];
  State start = before;
  start.gate = 0;
  if (!admit(step, node, start)) return true;
  start.nodes[step.node] = node;
  for (int swapped = 0; swapped <= (commutes(step.node, node) ? 1 : 0); ++swapped) {
    State state = start;
    if (!bind_node(step.node, node, swapped == 1, state)) continue;
    if (!extend(index + 1, state)) return false;
  }
  return true;
}

/// Checks the gates that do not depend on the order of operands.
bool Search::admit(const SearchStep& step, NodeId node, State& state) {
  if (!check_op(step, node, state)) return false;
  if (is_taken(step.node, node, state))
    return reject(state, "N07", rule_.nodes[step.node].span, node, [&] {
      return fmt::format("{} is already matched by another node of the pattern", shown(node));
    });
  ++state.gate;
  return check_arity(step.node, node, state);
}

/// Returns true if the node is matched already. Under equality equal nodes count as one: they may
/// match several times, but are replaced only once. A node that must be absent is never a matched
/// one.
bool Search::is_taken(PatternNodeId id, NodeId node, const State& state) const {
  const bool absent = rule_.nodes[id].negation >= 0;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (state.nodes[PatternNodeId(i)] != node) continue;
    if (equal_ == nullptr || absent || (has_output(id) && has_output(PatternNodeId(i))))
      return true;
  }
  for (const GroupPtr& group : state.groups)
    if (group && std::binary_search(group->sorted.begin(), group->sorted.end(), node)) return true;
  return false;
}

bool Search::has_output(PatternNodeId id) const {
  const std::vector<PatternValueId>& results = rule_.nodes[id].results;
  return std::any_of(results.begin(), results.end(), [&](PatternValueId v) {
    const std::string& name = rule_.values[v].name;
    return std::find(rule_.outputs.begin(), rule_.outputs.end(), name) != rule_.outputs.end();
  });
}

bool Search::commutes(PatternNodeId id, NodeId node) const {
  const PatternNode& pattern = rule_.nodes[id];
  return context().ops[pattern.op].traits.commutative && graph_.operand_count(node) >= 2 &&
         pattern.operands.size() >= 2 && pattern.operands[0] != pattern.operands[1] &&
         graph_.operand(node, 0) != graph_.operand(node, 1);
}

/// Binds a node. Types precede attributes: a shape's mismatch of `d` is the better reason if `sizes
/// = [d, d]` does not fit.
bool Search::bind_node(PatternNodeId id, NodeId node, bool swapped, State& state) {
  if (!bind_operands(id, node, swapped, state)) return false;
  for (PatternValueId v : rule_.nodes[id].operands)
    if (!check_types(v, node, state)) return false;
  if (!match_attributes(id, node, state) || !bind_results(id, node, state)) return false;
  ++state.matched;
  state.gate = 0;
  return true;
}

bool Search::check_op(const SearchStep& step, NodeId node, State& state) {
  const PatternNode& pattern = rule_.nodes[step.node];
  if (graph_.op(node) == pattern.op) return ++state.gate, true;
  const std::string& wanted = context().ops[pattern.op].name;
  if (step.from == SearchStep::From::producer && step.neighbour.valid() &&
      state.nodes[step.neighbour].valid() && !rule_.values[step.via].list) {
    NodeId reader = state.nodes[step.neighbour];
    for (std::size_t i = 0; i < graph_.operand_count(reader); ++i) {
      ValueId v = graph_.operand(reader, i);
      if (!v.valid() || v == state.values[step.via] || graph_.is_input(v)) continue;
      if (graph_.op(graph_.producer(v)) != pattern.op) continue;
      return reject(state, "N03", pattern.span, reader, [&] {
        return fmt::format(
            "{} has the `{}` as operand {}, the pattern as operand {}; `{}` is not commutative "
            "there",
            shown(reader), wanted, i, step.operand, graph_.op_of(reader).name);
      });
    }
  }
  return reject(
      state, "N01", pattern.span, node,
      [&] { return fmt::format("{} is not `{}`", shown(node), wanted); },
      is_behind_views(node, pattern.op) ? kView : std::string_view());
}

/// Returns true if the node is a view, through any number of steps, of the result of a node with
/// the op.
bool Search::is_behind_views(NodeId node, OpId wanted) const {
  while (explain_ && node.valid() && graph_.op_of(node).traits.view &&
         graph_.operand_count(node) > 0 && graph_.operand(node, 0).valid()) {
    node = graph_.producer(graph_.operand(node, 0));
    if (node.valid() && graph_.op(node) == wanted) return true;
  }
  return false;
}

bool Search::check_arity(PatternNodeId id, NodeId node, State& state) {
  const PatternNode& pattern = rule_.nodes[id];
  const auto list_in = [&](const std::vector<PatternValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](PatternValueId v) { return rule_.values[v].list; });
  };
  // Results of `many` are lists over the members; each member has one.
  const bool rest = !pattern.members.valid() && list_in(pattern.results);
  if (rest ? graph_.result_count(node) + 1 < pattern.results.size()
           : graph_.result_count(node) != pattern.results.size())
    return reject(state, "N02", pattern.span, node, [&] {
      return fmt::format("{} has {} results, the pattern {}", shown(node),
                         graph_.result_count(node), pattern.results.size());
    });
  if (list_at(id)) {
    if (graph_.operand_count(node) + 1 >= pattern.operands.size()) return ++state.gate, true;
    return reject(state, "N02", pattern.span, node, [&] {
      return fmt::format("{} has {} operands, the pattern at least {}", shown(node),
                         graph_.operand_count(node), pattern.operands.size() - 1);
    });
  }
  // An omitted trailing operand counts as `none`.
  std::size_t both = std::min(graph_.operand_count(node), pattern.operands.size());
  bool fits = true;
  for (std::size_t i = both; i < graph_.operand_count(node); ++i)
    fits = fits && !graph_.operand(node, i).valid();
  for (std::size_t i = both; i < pattern.operands.size(); ++i) {
    const PatternValue& v = rule_.values[pattern.operands[i]];
    fits = fits && (v.literal_none || v.optional);
  }
  if (fits) return ++state.gate, true;
  return reject(state, "N02", pattern.span, node, [&] {
    return fmt::format("{} has {} operands, the pattern {}", shown(node),
                       graph_.operand_count(node), pattern.operands.size());
  });
}

bool Search::finish(State& state) {
  Match match;
  match.rule = layout_.id;
  match.nodes = state.nodes.raw();
  list_members(state, match);
  if (!run_deferred(state, true)) return true;
  if (!state.deferred.empty()) return split_shape(state);
  if (!bind_lists(state) || !check_read(state, match)) return true;
  if (rule_.frontier) {
    match.env = std::move(state.env);
    return report(match);
  }
  if (!check_closed(state, match) || !check_where(state) || !check_assume(state, match) ||
      !check_absent(state))
    return true;
  State after;  // the environment now belongs to the match
  after.matched = state.matched;
  after.gate = state.gate;
  match.env = std::move(state.env);
  if (!check_convex(after, match)) return true;
  return report(match);
}

/// Splits `[*a, d, *b]` with two unknown lengths: `a` is as short as the rest of the pattern
/// allows.
bool Search::split_shape(const State& before) {
  const auto waits = std::find_if(before.deferred.begin(), before.deferred.end(),
                                  [&](const Deferred& d) { return may_split(d, before); });
  const TypeId type = graph_.type(before.values[waits->value]);
  const Shape shape = type == Types::unknown() ? Shape{} : context().types[type].shape;
  std::size_t begin = 0;
  std::string open;
  for (const Expr& e : rule_.values[waits->value].types[waits->type].dims) {
    const auto known = before.env.find(e.text);
    if (e.kind == Expr::Kind::star && known == before.env.end()) {
      open = e.text;
      break;
    }
    const auto* sequence =
        e.kind == Expr::Kind::star ? std::get_if<Shape>(&known->second) : nullptr;
    begin += sequence != nullptr ? sequence->size() : 1;
  }
  const std::uint64_t reported = reported_;
  for (std::size_t end = begin; end <= shape.size(); ++end) {
    if (++steps_ > most_steps_) return false;
    State state = before;
    state.env.insert_or_assign(open, Shape(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                                           shape.begin() + static_cast<std::ptrdiff_t>(end)));
    if (!finish(state)) return false;
    if (reported_ != reported) return true;
  }
  if (begin <= shape.size()) return true;
  State state = before;
  check_type(waits->value, waits->type, anchor_, state, true);
  return true;
}

/// Returns the operand slot of a list, of which a node has any number.
std::optional<std::size_t> Search::list_at(PatternNodeId id) const {
  const std::vector<PatternValueId>& operands = rule_.nodes[id].operands;
  if (rule_.lists.empty() && rule_.members.empty()) return std::nullopt;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const PatternValue& value = rule_.values[operands[i]];
    if (!value.list) continue;
    // An operand that differs between members has one value in each.
    if (rule_.nodes[id].members.valid()) continue;
    return i;
  }
  return std::nullopt;
}

bool Search::reject(const State& state, const char* code, Span span, NodeId at, const Text& text,
                    std::string_view help) {
  if (quiet_) return false;
  if (std::pair(state.matched, state.gate) <= std::pair(failure_.matched, failure_.gate))
    return false;
  failure_ = {state.matched,
              state.gate,
              code,
              explain_ ? with_written_names(text()) : std::string(),
              span,
              at,
              state.nodes.raw(),
              help};
  return false;
}

std::string Search::shown(PatternValueId id, ValueId value) const {
  const std::string& name = rule_.values[id].name;
  if (!name.empty() && name != "_") return name;
  return value.valid() ? fmt::format("%{}", graph_.value_name(value)) : std::string("none");
}

std::string Search::shown(NodeId node) const {
  return fmt::format("%{} ({})", graph_.node_name(node), graph_.op_of(node).name);
}

}  // namespace pw
