#include "rewriter/matcher/search_scope.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "rewriter/egraph/egraph.hpp"
#include "rewriter/engine/written_names.hpp"

namespace pw {

SearchState SearchScope::first_state() const {
  SearchState state;
  state.nodes.resize(rule.nodes.size());
  state.values.resize(rule.values.size());
  state.bound.resize(rule.values.size(), SearchState::Bound::no);
  if (!rule.lists.empty() || !rule.members.empty()) state.lists.resize(rule.values.size());
  state.groups.resize(rule.members.size());
  state.env = base;
  return state;
}

bool SearchScope::reject(const SearchState& state, const char* code, Span span, NodeId at,
                         const Text& text, std::string_view help) {
  if (quiet) return false;
  if (std::pair(state.matched, state.gate) <= std::pair(failure.matched, failure.gate))
    return false;
  failure = {state.matched,
             state.gate,
             code,
             explain ? with_written_names(text()) : std::string(),
             span,
             at,
             state.nodes.raw(),
             help};
  return false;
}

bool SearchScope::same(ValueId a, ValueId b) const {
  if (a == b || equal == nullptr) return a == b;
  return a.valid() && b.valid() && equal->same(a, b);
}

bool SearchScope::same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](ValueId x, ValueId y) { return same(x, y); });
}

std::vector<NodeId> SearchScope::producers(ValueId value) const {
  if (!value.valid()) return {};
  if (equal != nullptr) return equal->producers(value);
  if (graph.is_input(value)) return {};
  return {graph.producer(value)};
}

std::optional<std::size_t> SearchScope::list_at(PatternNodeId id) const {
  const std::vector<PatternValueId>& operands = rule.nodes[id].operands;
  if (rule.lists.empty() && rule.members.empty()) return std::nullopt;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const PatternValue& value = rule.values[operands[i]];
    if (!value.list) continue;
    // An operand that differs between members has one value in each.
    if (rule.nodes[id].members.valid()) continue;
    return i;
  }
  return std::nullopt;
}

std::string SearchScope::shown(PatternValueId id, ValueId value) const {
  const std::string& name = rule.values[id].name;
  if (!name.empty() && name != "_") return name;
  return value.valid() ? fmt::format("%{}", graph.value_name(value)) : std::string("none");
}

std::string SearchScope::shown(NodeId node) const {
  return fmt::format("%{} ({})", graph.node_name(node), graph.op_of(node).name);
}

}  // namespace pw
