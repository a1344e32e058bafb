// The gates of one node in the order of their cost: op, already matched, arity, operands, types,
// attributes, results. Types precede attributes, since a mismatch of a shape is the better reason.
//
// Checks that wait for a variable are a worklist that is run to a fixed point (run_deferred), since
// one of them may bind what another needs. Invariant: what a refused node has bound is dropped with
// its state. Cost: linear in the node's operands and attributes, and quadratic in the deferred
// checks.
#include "rewriter/matcher/node_gates.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rewriter/egraph/egraph.hpp"

namespace pw {
namespace {

constexpr std::string_view kNoUser =
    "no node reads the value this way: remove the op from the pattern, or write a rule for the ops "
    "that read it";
constexpr std::string_view kView =
    "a view is in between: use `views(…)` or an optional node to match it";

}  // namespace

/// Rejects the step if no user of a connecting value has the op. Prefers a user of another
/// connecting value, or of another result of the value's node, as the more informative reason.
void NodeGates::reject_users(const SearchStep& step, const SearchState& state) {
  const PatternNode& wanted = rule_.nodes[step.node];
  const std::string& op = scope_.context().ops[wanted.op].name;
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
    scope_.reject(state, "N07", wanted.span, reader, [&] {
      return fmt::format("{} does not read {}", scope_.shown(reader),
                         value.valid() ? scope_.shown(via, value) : "none");
    });
    return;
  }
  NodeId at = value.valid() ? graph_.producer(value) : NodeId();
  for (std::size_t i = 0; at.valid() && i < graph_.result_count(at); ++i) {
    NodeId user = user_of(graph_.result(at, i));
    if (!user.valid()) continue;
    scope_.reject(state, "N07", wanted.span, user, [&] {
      return fmt::format("{} reads %{}, not {}", scope_.shown(user),
                         graph_.value_name(graph_.result(at, i)), scope_.shown(via, value));
    });
    return;
  }
  const auto text = [&] {
    return fmt::format("{} has no user that is `{}`",
                       value.valid() ? scope_.shown(via, value) : "none", op);
  };
  scope_.reject(state, "N01", wanted.span, at.valid() ? at : scope_.anchor, text, kNoUser);
}

/// Returns the bound value that leads to the node: among several operands the one with the fewest
/// users.
ValueId NodeGates::connector_of(const SearchStep& step, const SearchState& state) const {
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
std::vector<NodeId> NodeGates::users_to_try(const SearchStep& step,
                                            const SearchState& state) const {
  const PatternNode& node = rule_.nodes[step.node];
  const ValueId connector = connector_of(step, state);
  std::vector<NodeId> out;
  if (!connector.valid()) return out;
  const auto add_users = [&](ValueId v) {
    for (UseId u = graph_.first_use(v); u.valid(); u = graph_.next_use(u))
      if (graph_.op(graph_.user(u)) == node.op &&
          (scope_.equal == nullptr || scope_.equal->is_form(graph_.user(u))))
        out.push_back(graph_.user(u));
  };
  if (scope_.equal == nullptr) {
    add_users(connector);
  } else {
    for (ValueId member : scope_.equal->members(connector)) add_users(member);
  }
  std::sort(out.begin(), out.end(),
            [&](NodeId a, NodeId b) { return graph_.label(a) < graph_.label(b); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Checks the gates that do not depend on the order of operands.
bool NodeGates::admit(const SearchStep& step, NodeId node, SearchState& state) {
  if (!check_op(step, node, state)) return false;
  if (is_taken(step.node, node, state))
    return scope_.reject(state, "N07", rule_.nodes[step.node].span, node, [&] {
      return fmt::format("{} is already matched by another node of the pattern",
                         scope_.shown(node));
    });
  ++state.gate;
  return check_arity(step.node, node, state);
}

/// Returns true if the node is matched already. Under equality equal nodes count as one: they may
/// match several times, but are replaced only once. A node that must be absent is never a matched
/// one.
bool NodeGates::is_taken(PatternNodeId id, NodeId node, const SearchState& state) const {
  const bool absent = rule_.nodes[id].negation >= 0;
  for (std::size_t i = 0; i < state.nodes.size(); ++i) {
    if (state.nodes[PatternNodeId(i)] != node) continue;
    if (scope_.equal == nullptr || absent || (has_output(id) && has_output(PatternNodeId(i))))
      return true;
  }
  for (const GroupPtr& group : state.groups)
    if (group && std::binary_search(group->sorted.begin(), group->sorted.end(), node)) return true;
  return false;
}

bool NodeGates::has_output(PatternNodeId id) const {
  const std::vector<PatternValueId>& results = rule_.nodes[id].results;
  return std::any_of(results.begin(), results.end(), [&](PatternValueId v) {
    const std::string& name = rule_.values[v].name;
    return std::find(rule_.outputs.begin(), rule_.outputs.end(), name) != rule_.outputs.end();
  });
}

bool NodeGates::commutes(PatternNodeId id, NodeId node) const {
  const PatternNode& pattern = rule_.nodes[id];
  return scope_.context().ops[pattern.op].traits.commutative && graph_.operand_count(node) >= 2 &&
         pattern.operands.size() >= 2 && pattern.operands[0] != pattern.operands[1] &&
         graph_.operand(node, 0) != graph_.operand(node, 1);
}

/// Binds a node. Types precede attributes: a shape's mismatch of `d` is the better reason if `sizes
/// = [d, d]` does not fit.
bool NodeGates::bind_node(PatternNodeId id, NodeId node, bool swapped, SearchState& state) {
  if (!values_.bind_operands(id, node, swapped, state)) return false;
  for (PatternValueId v : rule_.nodes[id].operands)
    if (!values_.check_types(v, node, state)) return false;
  if (!attributes_.match_attributes(id, node, state) || !values_.bind_results(id, node, state))
    return false;
  ++state.matched;
  state.gate = 0;
  return true;
}

bool NodeGates::check_op(const SearchStep& step, NodeId node, SearchState& state) {
  const PatternNode& pattern = rule_.nodes[step.node];
  if (graph_.op(node) == pattern.op) return ++state.gate, true;
  const std::string& wanted = scope_.context().ops[pattern.op].name;
  if (step.from == SearchStep::From::producer && step.neighbour.valid() &&
      state.nodes[step.neighbour].valid() && !rule_.values[step.via].list) {
    NodeId reader = state.nodes[step.neighbour];
    for (std::size_t i = 0; i < graph_.operand_count(reader); ++i) {
      ValueId v = graph_.operand(reader, i);
      if (!v.valid() || v == state.values[step.via] || graph_.is_input(v)) continue;
      if (graph_.op(graph_.producer(v)) != pattern.op) continue;
      return scope_.reject(state, "N03", pattern.span, reader, [&] {
        return fmt::format(
            "{} has the `{}` as operand {}, the pattern as operand {}; `{}` is not commutative "
            "there",
            scope_.shown(reader), wanted, i, step.operand, graph_.op_of(reader).name);
      });
    }
  }
  return scope_.reject(
      state, "N01", pattern.span, node,
      [&] { return fmt::format("{} is not `{}`", scope_.shown(node), wanted); },
      is_behind_views(node, pattern.op) ? kView : std::string_view());
}

/// Returns true if the node is a view, through any number of steps, of the result of a node with
/// the op.
bool NodeGates::is_behind_views(NodeId node, OpId wanted) const {
  while (scope_.explain && node.valid() && graph_.op_of(node).traits.view &&
         graph_.operand_count(node) > 0 && graph_.operand(node, 0).valid()) {
    node = graph_.producer(graph_.operand(node, 0));
    if (node.valid() && graph_.op(node) == wanted) return true;
  }
  return false;
}

bool NodeGates::check_arity(PatternNodeId id, NodeId node, SearchState& state) {
  const PatternNode& pattern = rule_.nodes[id];
  const auto list_in = [&](const std::vector<PatternValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](PatternValueId v) { return rule_.values[v].list; });
  };
  // Results of `many` are lists over the members; each member has one.
  const bool rest = !pattern.members.valid() && list_in(pattern.results);
  if (rest ? graph_.result_count(node) + 1 < pattern.results.size()
           : graph_.result_count(node) != pattern.results.size())
    return scope_.reject(state, "N02", pattern.span, node, [&] {
      return fmt::format("{} has {} results, the pattern {}", scope_.shown(node),
                         graph_.result_count(node), pattern.results.size());
    });
  if (scope_.list_at(id)) {
    if (graph_.operand_count(node) + 1 >= pattern.operands.size()) return ++state.gate, true;
    return scope_.reject(state, "N02", pattern.span, node, [&] {
      return fmt::format("{} has {} operands, the pattern at least {}", scope_.shown(node),
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
  return scope_.reject(state, "N02", pattern.span, node, [&] {
    return fmt::format("{} has {} operands, the pattern {}", scope_.shown(node),
                       graph_.operand_count(node), pattern.operands.size());
  });
}

/// Returns true if the check waits for the split of a shape with several sequences.
bool NodeGates::may_split(const SearchState::Deferred& deferred, const SearchState& state) const {
  if (!deferred.value.valid()) return false;
  return open_sequences(rule_.values[deferred.value].types[deferred.type], state.env) > 1;
}

/// Evaluates deferred checks to a fixed point. The rest then fails, or stays deferred, as do shapes
/// with several possible splits.
bool NodeGates::run_deferred(SearchState& state, bool may_fail) {
  std::vector<SearchState::Deferred> waiting;
  for (bool last = false; !state.deferred.empty();) {
    waiting.swap(state.deferred);
    state.deferred.clear();
    for (const SearchState::Deferred& d : waiting) {
      bool fits = d.node.valid() ? attributes_.match_written(d.node, d.attribute,
                                                             state.nodes[d.node], state, last)
                                 : values_.check_type(d.value, d.type, scope_.anchor, state, last);
      if (!fits) return false;
    }
    last =
        state.deferred.size() == waiting.size();  // nothing changed: the next round is the last one
    const auto splits = [&](const SearchState::Deferred& d) { return may_split(d, state); };
    if (last && (!may_fail || std::any_of(waiting.begin(), waiting.end(), splits))) return true;
  }
  ++state.gate;
  return true;
}

}  // namespace pw
