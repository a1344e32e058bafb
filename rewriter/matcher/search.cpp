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

namespace pw {
namespace {

constexpr std::string_view kInput =
    "no node of the graph computes this value: a pattern matches here only if it takes the value "
    "as given";
}  // namespace

void Search::run(NodeId anchor, const std::function<bool(const Match&)>& found) {
  scope_.failure = {};
  steps_ = 0;
  scope_.in_the_way.clear();
  found_ = &found;
  start(anchor);
}

void Search::run_fixed(std::span<const NodeId> nodes,
                       const std::function<bool(const Match&)>& found) {
  scope_.failure = {};
  steps_ = 0;
  scope_.in_the_way.clear();
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

void Search::start(NodeId anchor) {
  if (rule_.frontier && !frontiers_) return;
  scope_.anchor = anchor;
  SearchState state;
  if (!layout_.connected() || layout_.steps.empty()) {
    scope_.reject(state, "N01", rule_.name_span, anchor,
                  [] { return std::string("the pattern is not connected"); });
    return;
  }
  if (!nodes_.check_op(layout_.steps[0], anchor, state)) return;
  if (layout_.steps[0].members.valid())
    return members_.start(
        anchor, [&](std::size_t index, SearchState& next) { return extend(index, next); });
  try_node(0, anchor, scope_.first_state());
}

/// Extends the state by step `index`. Returns true to continue with other choices, false if the
/// caller wants no more.
bool Search::extend(std::size_t index, SearchState& state) {
  if (index == layout_.steps.size()) return finish(state);
  const SearchStep& step = layout_.steps[index];
  if (step.from == SearchStep::From::members) return extend_members(index, state);
  if (NodeId node = fixed(step.node); node.valid()) return try_node(index, node, state);
  if (step.from == SearchStep::From::producer) {
    ValueId value = nodes_.connector_of(step, state);
    if (scope_.equal != nullptr) return extend_equal(index, value, state);
    NodeId node = value.valid() ? graph_.producer(value) : NodeId();
    if (!node.valid()) {
      const PatternNode& wanted = rule_.nodes[step.node];
      const auto text = [&] {
        return fmt::format("%{} is an input of the graph, not a result of `{}`",
                           value.valid() ? graph_.value_name(value) : "none",
                           scope_.context().ops[wanted.op].name);
      };
      scope_.reject(state, "N01", wanted.span, state.nodes[step.neighbour], text, kInput);
      return true;
    }
    return try_node(index, node, state);
  }
  std::vector<NodeId> users = nodes_.users_to_try(step, state);
  if (users.empty()) return nodes_.reject_users(step, state), true;
  for (NodeId user : users)
    if (!try_node(index, user, state)) return false;
  return true;
}

/// Tries each node that computes a value equal to the given one.
bool Search::extend_equal(std::size_t index, ValueId value, SearchState& state) {
  const OpId op = rule_.nodes[layout_.steps[index].node].op;
  for (NodeId node : scope_.producers(value))
    if (graph_.op(node) == op && !try_node(index, node, state)) return false;
  return true;
}

bool Search::extend_members(std::size_t index, SearchState& state) {
  const SearchStep& step = layout_.steps[index];
  if (!nodes_.run_deferred(state, false)) return true;
  for (const GroupPtr& group : members_.groups_of(step, state)) {
    SearchState next = state;
    members_.bind_group(*group, next);
    next.groups[step.members] = group;
    next.matched += static_cast<int>(group->width);
    next.gate = 0;
    if (!extend(index + 1, next)) return false;
  }
  return true;
}

bool Search::try_node(std::size_t index, NodeId node, const SearchState& before) {
  if (++steps_ > most_steps_) return false;
  const SearchStep& step = layout_.steps[index];
  SearchState start = before;
  start.gate = 0;
  if (!nodes_.admit(step, node, start)) return true;
  start.nodes[step.node] = node;
  for (int swapped = 0; swapped <= (nodes_.commutes(step.node, node) ? 1 : 0); ++swapped) {
    SearchState state = start;
    if (!nodes_.bind_node(step.node, node, swapped == 1, state)) continue;
    if (!extend(index + 1, state)) return false;
  }
  return true;
}

bool Search::finish(SearchState& state) {
  Match match;
  match.rule = layout_.id;
  match.nodes = state.nodes.raw();
  gates_.list_members(state, match);
  if (!nodes_.run_deferred(state, true)) return true;
  if (!state.deferred.empty()) return split_shape(state);
  if (!gates_.bind_lists(state) || !gates_.check_read(state, match)) return true;
  if (rule_.frontier) {
    match.env = std::move(state.env);
    return report(match);
  }
  if (!gates_.check_closed(state, match) || !gates_.check_where(state) ||
      !gates_.check_assume(state, match) || !gates_.check_absent(state))
    return true;
  SearchState after;  // the environment now belongs to the match
  after.matched = state.matched;
  after.gate = state.gate;
  match.env = std::move(state.env);
  if (!gates_.check_convex(after, match)) return true;
  return report(match);
}

/// Splits `[*a, d, *b]` with two unknown lengths: `a` is as short as the rest of the pattern
/// allows.
bool Search::split_shape(const SearchState& before) {
  const auto waits =
      std::find_if(before.deferred.begin(), before.deferred.end(),
                   [&](const SearchState::Deferred& d) { return nodes_.may_split(d, before); });
  const TypeId type = graph_.type(before.values[waits->value]);
  const Shape shape = type == Types::unknown() ? Shape{} : scope_.context().types[type].shape;
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
    SearchState state = before;
    state.env.insert_or_assign(open, Shape(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                                           shape.begin() + static_cast<std::ptrdiff_t>(end)));
    if (!finish(state)) return false;
    if (reported_ != reported) return true;
  }
  if (begin <= shape.size()) return true;
  SearchState state = before;
  nodes_.values().check_type(waits->value, waits->type, scope_.anchor, state, true);
  return true;
}

}  // namespace pw
