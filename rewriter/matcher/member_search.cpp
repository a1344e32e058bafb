// Lists: `many y = mm(x, w)`, a member for each user of a value that fits, and `cat(relu(x)...)`, a
// member for each operand.
//
// Members are tried one after the other in one state, and put into a group for each choice of what
// they have in common (MembersLayout::keys): members that differ in it belong to different matches.
// Invariant: a group is maximal. It contains all members that fit, without those that depend on an
// earlier one, since these could not be replaced together. The cost is linear in the users of the
// common value, not in the subsets of them.
#include "rewriter/matcher/member_search.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "rewriter/egraph/egraph.hpp"

namespace pw {
namespace {

std::string encode(Context& context, const Binding& binding) {
  const std::optional<Attribute> attribute = as_attribute(context, binding);
  return attribute ? context.attributes.print(*attribute) : std::string("-");
}

void keep_members(Group& group, const std::vector<bool>& kept) {
  const std::size_t lists = group.size() == 0 ? 0 : group.lists.size() / group.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept[i]) continue;
    for (std::size_t k = 0; k < group.width; ++k)
      group.nodes[count * group.width + k] = group.nodes[i * group.width + k];
    for (std::size_t k = 0; count != i && k < lists; ++k)
      group.lists[count * lists + k] = std::move(group.lists[i * lists + k]);
    ++count;
  }
  group.nodes.resize(count * group.width);
  group.lists.resize(count * lists);
}

/// Removes members that depend on an earlier one, since they cannot be replaced together.
void drop_dependents(const Graph& graph, std::size_t root, Group& group) {
  if (group.size() < 2) return;
  const std::uint64_t last = graph.label(group.root(group.size() - 1, root));
  std::unordered_map<NodeId, NodeId> reached;  // from which node; looked up only
  std::vector<NodeId> open;
  const auto follow = [&](NodeId node) {
    for (std::size_t i = 0; i < graph.result_count(node); ++i) {
      const ValueId value = graph.result(node, i);
      for (UseId u = graph.first_use(value); u.valid(); u = graph.next_use(u)) {
        const NodeId user = graph.user(u);
        if (graph.label(user) <= last && reached.emplace(user, node).second) open.push_back(user);
      }
    }
  };
  std::vector<bool> kept(group.size(), false);
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (reached.contains(group.root(i, root))) {
      for (auto at = reached.find(group.root(i, root)); at != reached.end();
           at = reached.find(at->second))
        group.in_the_way.push_back(at->first);
      continue;
    }
    follow(group.root(i, root));
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      follow(node);
    }
    kept[i] = true;
  }
  keep_members(group, kept);
}

/// Removes members that compute the same as an earlier one, which count once under equality.
void drop_equals(const Graph& graph, const EGraph& equal, std::size_t root, Group& group) {
  std::set<std::vector<ValueId>> seen;
  std::vector<bool> kept;
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::vector<ValueId> results;
    for (std::size_t r = 0; r < graph.result_count(group.root(i, root)); ++r)
      results.push_back(equal.find(graph.result(group.root(i, root), r)));
    kept.push_back(seen.insert(std::move(results)).second);
  }
  keep_members(group, kept);
}

}  // namespace

MemberSearch::Mark MemberSearch::mark(std::span<const PatternNodeId> ids,
                                      const SearchState& state) const {
  Mark out;
  for (PatternNodeId id : ids) {
    for (const auto* values : {&rule_.nodes[id].operands, &rule_.nodes[id].results})
      for (PatternValueId v : *values)
        if (state.bound[v] == SearchState::Bound::no) out.values.push_back(v);
    for (const std::string& name : layout_.names[id])
      if (!state.env.contains(name)) out.names.push_back(&name);
  }
  out.deferred = state.deferred.size();
  out.matched = state.matched;
  out.gate = state.gate;
  return out;
}

void MemberSearch::undo(const Mark& mark, SearchState& state) {
  for (PatternValueId v : mark.values) {
    state.bound[v] = SearchState::Bound::no;
    state.values[v] = {};
  }
  for (const std::string* name : mark.names) state.env.erase(*name);
  state.deferred.resize(mark.deferred);
  state.matched = mark.matched;
  state.gate = mark.gate;
}

/// Tries all assignments of this node of a member, and continues with the rest of the member.
/// Returns false if the caller wants no more.
bool MemberSearch::member_node(MembersId id, std::size_t index, NodeId node, SearchState& state,
                               const Fits& fits) {
  const MembersLayout& layout = layout_.members[id];
  if (index == layout.steps.size()) return fits();
  const SearchStep& step = layout.steps[index];
  if (step.from == SearchStep::From::producer && !node.valid()) {
    const std::vector<NodeId> makers = scope_.producers(state.values[step.via]);
    if (makers.empty()) {
      const PatternNode& wanted = rule_.nodes[step.node];
      scope_.reject(state, "N01", wanted.span, state.nodes[step.neighbour], [&] {
        return fmt::format("operand {} of {} is not a result of `{}`", step.operand,
                           scope_.shown(state.nodes[step.neighbour]),
                           scope_.context().ops[wanted.op].name);
      });
    }
    for (NodeId maker : makers)
      if (!member_node(id, index, maker, state, fits)) return false;
    return true;
  }
  state.gate = 0;
  const Mark before = mark(std::span(&step.node, 1), state);
  bool more = true;
  if (nodes_.admit(step, node, state)) {
    state.nodes[step.node] = node;
    for (int swapped = 0; more && swapped <= (nodes_.commutes(step.node, node) ? 1 : 0);
         ++swapped) {
      if (nodes_.bind_node(step.node, node, swapped == 1, state))
        more = member_node(id, index + 1, {}, state, fits);
      undo(before, state);
    }
    state.nodes[step.node] = {};
  }
  undo(before, state);
  return more;
}

/// Evaluates the checks deferred since `from`. Sets `*open` if some still wait for names that
/// members do not bind.
bool MemberSearch::settle(std::size_t from, bool last, SearchState& state, bool* open) {
  if (state.deferred.size() == from) return true;
  const auto middle = state.deferred.begin() + static_cast<std::ptrdiff_t>(from);
  std::vector<SearchState::Deferred> mine(middle, state.deferred.end());
  state.deferred.erase(middle, state.deferred.end());
  mine.swap(state.deferred);
  const bool fits = nodes_.run_deferred(state, last);
  *open = *open || !state.deferred.empty();
  state.deferred = std::move(mine);
  return fits;
}

/// Returns a text of what the members of a group have in common: these values and names, and the
/// attributes that the right side copies.
std::string MemberSearch::common_key(MembersId id, const std::vector<PatternValueId>& values,
                                     const std::vector<const std::string*>& names,
                                     const SearchState& state) const {
  const auto class_of = [&](ValueId v) {
    return scope_.equal != nullptr && v.valid() ? scope_.equal->find(v) : v;
  };
  std::string key;
  for (PatternValueId v : values) key += fmt::format("{};", class_of(state.values[v]).index);
  for (const std::string* name : names) {
    const auto bound = state.env.find(*name);
    if (bound == state.env.end())
      key += "?;";
    else if (const auto* value = std::get_if<ValueId>(&bound->second))
      key += fmt::format("v{};", class_of(*value).index);
    else
      key += encode(scope_.context(), bound->second) + ";";
  }
  for (std::size_t k : layout_.members[id].copied)
    key += fmt::format("a{};", graph_.attributes(state.nodes[rule_.members[id].nodes[k]]).index);
  return key;
}

/// Returns the groups of members with these roots, in order of their first member. `last`: all
/// names that the pattern has outside of them are bound.
std::vector<GroupPtr> MemberSearch::collect(MembersId id, const Roots& roots, bool last,
                                            SearchState& state) {
  const Members& members = rule_.members[id];
  const MembersLayout& layout = layout_.members[id];
  std::vector<PatternValueId> values;
  for (PatternValueId v : layout.keys)
    if (state.bound[v] == SearchState::Bound::no) values.push_back(v);
  std::vector<const std::string*> names;
  for (const std::string& name : layout.names)
    if (!state.env.contains(name)) names.push_back(&name);

  std::vector<Group> groups;
  std::vector<std::size_t> latest;  // the last root taken, by group
  std::map<std::string, std::size_t> by_key;
  const std::size_t from = state.deferred.size();
  std::size_t at = 0;
  const auto add = [&](bool open) {
    const auto [it, fresh] =
        by_key.try_emplace(common_key(id, values, names, state), groups.size());
    if (fresh) {
      Group& group = groups.emplace_back();
      latest.push_back(at + 1);
      group.width = members.nodes.size();
      for (PatternValueId v : values) group.values.emplace_back(v, state.values[v]);
      for (const std::string* name : names)
        if (const auto bound = state.env.find(*name); bound != state.env.end())
          group.names.emplace_back(*name, bound->second);
    }
    Group& group = groups[it->second];
    if (!fresh && latest[it->second] == at) return;  // the first assignment of a member counts
    latest[it->second] = at;
    group.open = group.open || open;
    for (PatternNodeId node : members.nodes) group.nodes.push_back(state.nodes[node]);
    for (const std::string& name : layout.lists) {
      const auto bound = state.env.find(name);
      group.lists.push_back(bound == state.env.end() ? Binding(Absent{}) : bound->second);
    }
  };
  const Fits fits = [&] {
    const Mark before = mark(members.nodes, state);
    bool open = false;
    if (settle(from, last, state, &open)) add(open);
    for (const std::string* name : before.names) state.env.erase(*name);
    return true;
  };
  for (; at < roots.size(); ++at)
    for (NodeId root : roots[at]) member_node(id, 0, root, state, fits);

  std::vector<GroupPtr> out;
  for (Group& group : groups) {
    if (members.kind == Members::Kind::operands && group.size() != roots.size()) continue;
    if (members.kind == Members::Kind::many) {
      drop_dependents(graph_, root_place(id), group);
      if (scope_.equal != nullptr) drop_equals(graph_, *scope_.equal, root_place(id), group);
    }
    group.sorted = group.nodes;
    std::sort(group.sorted.begin(), group.sorted.end());
    out.push_back(std::make_shared<const Group>(std::move(group)));
  }
  return out;
}

void MemberSearch::bind_common(MembersId id, ValueId common, SearchState& state) const {
  const MembersLayout& layout = layout_.members[id];
  const PatternValueId v = rule_.nodes[rule_.members[id].root].operands[*layout.common];
  state.values[v] = common;
  state.bound[v] = SearchState::Bound::value;
  state.env.insert_or_assign(rule_.values[v].name, Binding(common));
}

/// Returns all groups among the users of their common value, independent of the rest of the
/// pattern.
const MemberSearch::Groups& MemberSearch::groups_at(ValueId common, MembersId id) {
  const auto [it, fresh] = groups_at_.try_emplace(common);
  Groups& out = it->second;
  if (!fresh) return out;
  SearchState state = scope_.first_state();
  bind_common(id, common, state);
  SearchStep step;
  step.from = SearchStep::From::user;
  step.node = rule_.members[id].root;
  step.connectors = {static_cast<int>(*layout_.members[id].common)};
  for (GroupPtr& group : collect(id, roots_of_users(step, state), false, state)) {
    if (settled(id, *group))
      out.by_first[group->root(0, root_place(id))].push_back(std::move(group));
    else
      out.open.push_back(std::move(group));
  }
  return out;
}

/// Returns the position of the root among the nodes of a member.
std::size_t MemberSearch::root_place(MembersId id) const {
  const Members& members = rule_.members[id];
  return static_cast<std::size_t>(
      std::find(members.nodes.begin(), members.nodes.end(), members.root) - members.nodes.begin());
}

/// Returns true if the rest of the pattern cannot change the group.
bool MemberSearch::settled(MembersId id, const Group& group) const {
  if (group.open) return false;
  for (const PatternNode& node : rule_.nodes) {
    if (node.members == id || node.negation >= 0) continue;
    for (PatternNodeId member : rule_.members[id].nodes)
      if (rule_.nodes[member].op == node.op) return false;
  }
  return true;
}

/// Starts at an anchor that is the root of members. It must be the first of them: one match for
/// each group.
void MemberSearch::start(NodeId anchor,
                         const std::function<bool(std::size_t, SearchState&)>& extend) {
  const MembersId id = layout_.steps[0].members;
  const MembersLayout& layout = layout_.members[id];
  if (!layout.common) return;
  std::vector<ValueId> tried;
  for (int swapped = 0; swapped <= (nodes_.commutes(rule_.members[id].root, anchor) ? 1 : 0);
       ++swapped) {
    std::size_t slot = *layout.common;
    if (swapped == 1 && slot < 2) slot = 1 - slot;
    if (slot >= graph_.operand_count(anchor)) continue;
    const ValueId common = graph_.operand(anchor, slot);
    if (!common.valid() || std::find(tried.begin(), tried.end(), common) != tried.end()) continue;
    tried.push_back(common);
    const Groups& groups = groups_at(common, id);
    std::vector<GroupPtr> mine;
    if (const auto first = groups.by_first.find(anchor); first != groups.by_first.end())
      mine = first->second;
    for (const GroupPtr& group : groups.open)
      if (std::binary_search(group->sorted.begin(), group->sorted.end(), anchor))
        mine.push_back(group);
    for (const GroupPtr& group : mine) {
      SearchState state = scope_.first_state();
      bind_common(id, common, state);
      bind_group(*group, state);
      anchored_ = group;
      if (!extend(1, state)) return;
    }
  }
}

/// Returns the anchor's own members, after the rest is known.
std::vector<GroupPtr> MemberSearch::own_members(const SearchStep& step, SearchState& state) {
  if (settled(step.members, *anchored_)) return {anchored_};
  const std::size_t root = root_place(step.members);
  Roots roots;
  for (std::size_t i = 0; i < anchored_->size(); ++i) roots.push_back({anchored_->root(i, root)});
  std::vector<GroupPtr> groups = collect(step.members, roots, true, state);
  std::erase_if(groups,
                [&](const GroupPtr& group) { return group->root(0, root) != scope_.anchor; });
  return groups;
}

/// Returns the roots of members: one for each user.
MemberSearch::Roots MemberSearch::roots_of_users(const SearchStep& step,
                                                 const SearchState& state) const {
  Roots out;
  for (NodeId user : nodes_.users_to_try(step, state))
    if (scope_.left_out == nullptr || !scope_.left_out->contains(user)) out.push_back({user});
  return out;
}

std::vector<GroupPtr> MemberSearch::used_members(const SearchStep& step, SearchState& state) {
  const Roots roots = roots_of_users(step, state);
  if (roots.empty()) nodes_.reject_users(step, state);
  return collect(step.members, roots, true, state);
}

/// Returns a member for each operand that the reader's list takes.
std::vector<GroupPtr> MemberSearch::read_members(const SearchStep& step, SearchState& state) {
  const Members& members = rule_.members[step.members];
  const NodeId reader = state.nodes[members.reader];
  const std::size_t slot = *scope_.list_at(members.reader);
  const std::vector<PatternValueId>& operands = rule_.nodes[members.reader].operands;
  const std::size_t taken = graph_.operand_count(reader) + 1 - operands.size();
  const auto result = static_cast<std::size_t>(rule_.values[operands[slot]].result);
  const PatternNode& wanted = rule_.nodes[members.root];
  Roots roots;
  for (std::size_t i = slot; i < slot + taken; ++i) {
    const ValueId value = graph_.operand(reader, i);
    std::vector<NodeId> makers = scope_.producers(value);
    std::erase_if(makers, [&](NodeId n) {
      return result >= graph_.result_count(n) || !scope_.same(graph_.result(n, result), value);
    });
    if (!makers.empty()) {
      roots.push_back(std::move(makers));
      continue;
    }
    scope_.reject(state, "N01", wanted.span, reader, [&] {
      return fmt::format("operand {} of {} is not a result of `{}`", i, scope_.shown(reader),
                         scope_.context().ops[wanted.op].name);
    });
    return {};
  }
  std::vector<GroupPtr> groups;
  if (!roots.empty()) groups = collect(step.members, roots, true, state);
  if (groups.empty())
    scope_.reject(state, "N07", members.span, reader, [&] {
      return fmt::format("the operands of {} do not agree, or there are none",
                         scope_.shown(reader));
    });
  return groups;
}

void MemberSearch::bind_group(const Group& group, SearchState& state) {
  scope_.in_the_way.insert(scope_.in_the_way.end(), group.in_the_way.begin(),
                           group.in_the_way.end());
  for (const auto& [v, value] : group.values) {
    state.values[v] = value;
    state.bound[v] = value.valid() ? SearchState::Bound::value : SearchState::Bound::none;
  }
  for (const auto& [name, binding] : group.names) state.env.insert_or_assign(name, binding);
}

std::vector<GroupPtr> MemberSearch::groups_of(const SearchStep& step, SearchState& state) {
  if (layout_.steps[0].members == step.members) return own_members(step, state);
  if (rule_.members[step.members].kind == Members::Kind::operands) return read_members(step, state);
  return used_members(step, state);
}

}  // namespace pw
