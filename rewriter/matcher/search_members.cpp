// Lists: `many y = mm(x, w)`, a member for each user of a value that fits, and `cat(relu(x)...)`, a
// member for each operand.
//
// Members are tried one after the other in one state, and put into a group for each choice of what
// they have in common (MembersLayout::keys): members that differ in it belong to different matches.
// Invariant: a group is maximal. It contains all members that fit, without those that depend on an
// earlier one, since these could not be replaced together. The cost is linear in the users of the
// common value, not in the subsets of them.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "rewriter/egraph/egraph.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/matcher/search.hpp"

namespace pw {
namespace {

std::string encode(Context& context, const Binding& binding) {
  const std::optional<Attribute> attribute = as_attribute(context, binding);
  return attribute ? context.attributes.print(*attribute) : std::string("-");
}

/// Returns the elements of one name as one binding: values, dims, numbers or texts; nothing for any
/// others.
std::optional<Binding> list_of(Context& context, const std::vector<const Binding*>& elements) {
  std::vector<ValueId> values;
  Shape dims;
  std::vector<double> reals;
  std::vector<std::string> texts;
  for (const Binding* element : elements) {
    if (const auto* value = std::get_if<ValueId>(element)) values.push_back(*value);
    if (std::holds_alternative<Absent>(*element)) values.emplace_back();
    if (const auto* dim = std::get_if<DimId>(element)) dims.push_back(*dim);
    const auto* attribute = std::get_if<Attribute>(element);
    if (attribute == nullptr) continue;
    if (const auto* dim = std::get_if<DimId>(attribute)) dims.push_back(*dim);
    if (const auto* integer = std::get_if<std::int64_t>(attribute))
      dims.push_back(context.dims.constant(*integer));
    if (const auto* real = std::get_if<double>(attribute)) reals.push_back(*real);
    if (const auto* text = std::get_if<std::string>(attribute)) texts.push_back(*text);
  }
  if (values.size() == elements.size()) return Binding(std::move(values));
  if (dims.size() == elements.size()) return Binding(std::move(dims));
  if (reals.size() == elements.size()) return Binding(Attribute(std::move(reals)));
  if (texts.size() == elements.size()) return Binding(Attribute(std::move(texts)));
  return std::nullopt;
}

}  // namespace

/// The unbound names that a node of a member may bind, for backtracking.
struct Search::Mark {
  std::vector<PatternValueId> values;
  std::vector<const std::string*> names;
  std::size_t deferred = 0;
  int matched = 0, gate = 0;
};

Search::Mark Search::mark(std::span<const PatternNodeId> ids, const State& state) const {
  Mark out;
  for (PatternNodeId id : ids) {
    for (const auto* values : {&rule_.nodes[id].operands, &rule_.nodes[id].results})
      for (PatternValueId v : *values)
        if (state.bound[v] == Bound::no) out.values.push_back(v);
    for (const std::string& name : layout_.names[id])
      if (!state.env.contains(name)) out.names.push_back(&name);
  }
  out.deferred = state.deferred.size();
  out.matched = state.matched;
  out.gate = state.gate;
  return out;
}

void Search::undo(const Mark& mark, State& state) {
  for (PatternValueId v : mark.values) {
    state.bound[v] = Bound::no;
    state.values[v] = {};
  }
  for (const std::string* name : mark.names) state.env.erase(*name);
  state.deferred.resize(mark.deferred);
  state.matched = mark.matched;
  state.gate = mark.gate;
}

/// Tries all assignments of this node of a member, and continues with the rest of the member.
/// Returns false if the caller wants no more.
bool Search::member_node(MembersId id, std::size_t index, NodeId node, State& state,
                         const Fits& fits) {
  const MembersLayout& layout = layout_.members[id];
  if (index == layout.steps.size()) return fits();
  const SearchStep& step = layout.steps[index];
  if (step.from == SearchStep::From::producer && !node.valid()) {
    const std::vector<NodeId> makers = producers(state.values[step.via]);
    if (makers.empty()) {
      const PatternNode& wanted = rule_.nodes[step.node];
      reject(state, "N01", wanted.span, state.nodes[step.neighbour], [&] {
        return fmt::format("operand {} of {} is not a result of `{}`", step.operand,
                           shown(state.nodes[step.neighbour]), context().ops[wanted.op].name);
      });
    }
    for (NodeId maker : makers)
      if (!member_node(id, index, maker, state, fits)) return false;
    return true;
  }
  state.gate = 0;
  const Mark before = mark(std::span(&step.node, 1), state);
  bool more = true;
  if (admit(step, node, state)) {
    state.nodes[step.node] = node;
    for (int swapped = 0; more && swapped <= (commutes(step.node, node) ? 1 : 0); ++swapped) {
      if (bind_node(step.node, node, swapped == 1, state))
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
bool Search::settle(std::size_t from, bool last, State& state, bool* open) {
  if (state.deferred.size() == from) return true;
  const auto middle = state.deferred.begin() + static_cast<std::ptrdiff_t>(from);
  std::vector<Deferred> mine(middle, state.deferred.end());
  state.deferred.erase(middle, state.deferred.end());
  mine.swap(state.deferred);
  const bool fits = run_deferred(state, last);
  *open = *open || !state.deferred.empty();
  state.deferred = std::move(mine);
  return fits;
}

/// Returns a text of what the members of a group have in common: these values and names, and the
/// attributes that the right side copies.
std::string Search::common_key(MembersId id, const std::vector<PatternValueId>& values,
                               const std::vector<const std::string*>& names,
                               const State& state) const {
  const auto class_of = [&](ValueId v) {
    return equal_ != nullptr && v.valid() ? equal_->find(v) : v;
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
      key += encode(context(), bound->second) + ";";
  }
  for (std::size_t k : layout_.members[id].copied)
    key += fmt::format("a{};", graph_.attributes(state.nodes[rule_.members[id].nodes[k]]).index);
  return key;
}

/// Returns the groups of members with these roots, in order of their first member. `last`: all
/// names that the pattern has outside of them are bound.
std::vector<GroupPtr> Search::collect(MembersId id, const Roots& roots, bool last, State& state) {
  const Members& members = rule_.members[id];
  const MembersLayout& layout = layout_.members[id];
  std::vector<PatternValueId> values;
  for (PatternValueId v : layout.keys)
    if (state.bound[v] == Bound::no) values.push_back(v);
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
      drop_dependents(id, group);
      if (equal_ != nullptr) drop_equals(id, group);
    }
    group.sorted = group.nodes;
    std::sort(group.sorted.begin(), group.sorted.end());
    out.push_back(std::make_shared<const Group>(std::move(group)));
  }
  return out;
}

/// Removes members that depend on an earlier one, since they cannot be replaced together.
void Search::drop_dependents(MembersId id, Group& group) const {
  const std::size_t root = root_place(id);
  if (group.size() < 2) return;
  const std::uint64_t last = graph_.label(group.root(group.size() - 1, root));
  std::unordered_map<NodeId, NodeId> reached;  // from which node; looked up only
  std::vector<NodeId> open;
  const auto follow = [&](NodeId node) {
    for (std::size_t i = 0; i < graph_.result_count(node); ++i) {
      const ValueId value = graph_.result(node, i);
      for (UseId u = graph_.first_use(value); u.valid(); u = graph_.next_use(u)) {
        const NodeId user = graph_.user(u);
        if (graph_.label(user) <= last && reached.emplace(user, node).second) open.push_back(user);
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
void Search::drop_equals(MembersId id, Group& group) const {
  const std::size_t root = root_place(id);
  std::set<std::vector<ValueId>> seen;
  std::vector<bool> kept;
  for (std::size_t i = 0; i < group.size(); ++i) {
    std::vector<ValueId> results;
    for (std::size_t r = 0; r < graph_.result_count(group.root(i, root)); ++r)
      results.push_back(equal_->find(graph_.result(group.root(i, root), r)));
    kept.push_back(seen.insert(std::move(results)).second);
  }
  keep_members(group, kept);
}

void Search::keep_members(Group& group, const std::vector<bool>& kept) {
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

// ---- where members are looked for

void Search::bind_common(MembersId id, ValueId common, State& state) const {
  const MembersLayout& layout = layout_.members[id];
  const PatternValueId v = rule_.nodes[rule_.members[id].root].operands[*layout.common];
  state.values[v] = common;
  state.bound[v] = Bound::value;
  state.env.insert_or_assign(rule_.values[v].name, Binding(common));
}

/// Returns all groups among the users of their common value, independent of the rest of the
/// pattern.
const Search::Groups& Search::groups_at(ValueId common, MembersId id) {
  const auto [it, fresh] = groups_at_.try_emplace(common);
  Groups& out = it->second;
  if (!fresh) return out;
  State state = first_state();
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
std::size_t Search::root_place(MembersId id) const {
  const Members& members = rule_.members[id];
  return static_cast<std::size_t>(
      std::find(members.nodes.begin(), members.nodes.end(), members.root) - members.nodes.begin());
}

/// Returns true if the rest of the pattern cannot change the group.
bool Search::settled(MembersId id, const Group& group) const {
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
void Search::start_members(NodeId anchor) {
  const MembersId id = layout_.steps[0].members;
  const MembersLayout& layout = layout_.members[id];
  if (!layout.common) return;
  std::vector<ValueId> tried;
  for (int swapped = 0; swapped <= (commutes(rule_.members[id].root, anchor) ? 1 : 0); ++swapped) {
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
      State state = first_state();
      bind_common(id, common, state);
      bind_group(*group, state);
      anchored_ = group;
      note_way(*group);
      if (!extend(1, state)) return;
    }
  }
}

bool Search::extend_members(std::size_t index, State& state) {
  const SearchStep& step = layout_.steps[index];
  if (!run_deferred(state, false)) return true;
  std::vector<GroupPtr> groups;
  if (layout_.steps[0].members == step.members)
    groups = own_members(step, state);
  else if (rule_.members[step.members].kind == Members::Kind::operands)
    groups = read_members(step, state);
  else
    groups = used_members(step, state);
  for (const GroupPtr& group : groups) {
    State next = state;
    bind_group(*group, next);
    note_way(*group);
    next.groups[step.members] = group;
    next.matched += static_cast<int>(group->width);
    next.gate = 0;
    if (!extend(index + 1, next)) return false;
  }
  return true;
}

/// Returns the anchor's own members, after the rest is known.
std::vector<GroupPtr> Search::own_members(const SearchStep& step, State& state) {
  if (settled(step.members, *anchored_)) return {anchored_};
  const std::size_t root = root_place(step.members);
  Roots roots;
  for (std::size_t i = 0; i < anchored_->size(); ++i) roots.push_back({anchored_->root(i, root)});
  std::vector<GroupPtr> groups = collect(step.members, roots, true, state);
  std::erase_if(groups, [&](const GroupPtr& group) { return group->root(0, root) != anchor_; });
  return groups;
}

/// Returns the roots of members: one for each user.
Search::Roots Search::roots_of_users(const SearchStep& step, const State& state) const {
  Roots out;
  for (NodeId user : users_to_try(step, state))
    if (left_out_ == nullptr || !left_out_->contains(user)) out.push_back({user});
  return out;
}

std::vector<GroupPtr> Search::used_members(const SearchStep& step, State& state) {
  const Roots roots = roots_of_users(step, state);
  if (roots.empty()) reject_users(step, state);
  return collect(step.members, roots, true, state);
}

/// Returns a member for each operand that the reader's list takes.
std::vector<GroupPtr> Search::read_members(const SearchStep& step, State& state) {
  const Members& members = rule_.members[step.members];
  const NodeId reader = state.nodes[members.reader];
  const std::size_t slot = *list_at(members.reader);
  const std::vector<PatternValueId>& operands = rule_.nodes[members.reader].operands;
  const std::size_t taken = graph_.operand_count(reader) + 1 - operands.size();
  const auto result = static_cast<std::size_t>(rule_.values[operands[slot]].result);
  const PatternNode& wanted = rule_.nodes[members.root];
  Roots roots;
  for (std::size_t i = slot; i < slot + taken; ++i) {
    const ValueId value = graph_.operand(reader, i);
    std::vector<NodeId> makers = producers(value);
    std::erase_if(makers, [&](NodeId n) {
      return result >= graph_.result_count(n) || !same(graph_.result(n, result), value);
    });
    if (!makers.empty()) {
      roots.push_back(std::move(makers));
      continue;
    }
    reject(state, "N01", wanted.span, reader, [&] {
      return fmt::format("operand {} of {} is not a result of `{}`", i, shown(reader),
                         context().ops[wanted.op].name);
    });
    return {};
  }
  std::vector<GroupPtr> groups;
  if (!roots.empty()) groups = collect(step.members, roots, true, state);
  if (groups.empty())
    reject(state, "N07", members.span, reader, [&] {
      return fmt::format("the operands of {} do not agree, or there are none", shown(reader));
    });
  return groups;
}

// ---- the value of a group

void Search::bind_group(const Group& group, State& state) {
  for (const auto& [v, value] : group.values) {
    state.values[v] = value;
    state.bound[v] = value.valid() ? Bound::value : Bound::none;
  }
  for (const auto& [name, binding] : group.names) state.env.insert_or_assign(name, binding);
}

/// Adds lists of values to the environment last, so that no earlier copy holds them.
bool Search::bind_lists(State& state) {
  for (std::size_t i = 0; i < state.lists.size(); ++i) {
    const PatternValue& value = rule_.values[PatternValueId(i)];
    if (state.lists[PatternValueId(i)] && !value.name.empty())
      state.env.insert_or_assign(value.name, Binding(*state.lists[PatternValueId(i)]));
  }
  for (std::size_t m = 0; m < state.groups.size(); ++m) {
    const MembersId id(m);
    const GroupPtr& group = state.groups[id];
    const std::vector<std::string>& names = layout_.members[id].lists;
    for (std::size_t j = 0; group && j < names.size(); ++j) {
      std::vector<const Binding*> elements;
      for (std::size_t i = 0; i < group->size(); ++i)
        elements.push_back(&group->lists[i * names.size() + j]);
      std::optional<Binding> list = list_of(context(), elements);
      if (!list)
        return reject(state, "N04", rule_.members[id].span, group->nodes.front(), [&] {
          return fmt::format("`{}` contains elements that lists do not support", names[j]);
        });
      state.env.insert_or_assign(names[j], std::move(*list));
    }
  }
  return true;
}

/// Checks that a reader of the results of members reads all of them, in their order.
bool Search::check_read(const State& state, const Match& match) {
  for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
    const PatternNodeId id(i);
    const NodeId node = match.nodes[i];
    const std::optional<std::size_t> slot = node.valid() ? list_at(id) : std::nullopt;
    if (!slot) continue;
    const PatternValueId list = rule_.nodes[id].operands[*slot];
    const PatternNodeId maker = rule_.values[list].producer;
    if (!maker.valid() || !rule_.nodes[maker].members.valid()) continue;
    const std::vector<ValueId> wanted = result_values(graph_, rule_, match, list);
    const std::size_t taken = graph_.operand_count(node) + 1 - rule_.nodes[id].operands.size();
    std::vector<ValueId> read;
    for (std::size_t k = 0; k < taken; ++k) read.push_back(graph_.operand(node, *slot + k));
    if (!same(wanted, read))
      return reject(state, "N07", rule_.nodes[id].span, node, [&] {
        return fmt::format("{} does not read the {} members in their order", shown(node),
                           wanted.size());
      });
  }
  return true;
}

void Search::list_members(const State& state, Match& match) const {
  match.members.resize(rule_.members.size());
  for (std::size_t m = 0; m < state.groups.size(); ++m) {
    const GroupPtr& group = state.groups[MembersId(m)];
    for (std::size_t i = 0; group && i < group->size(); ++i) {
      const auto first = group->nodes.begin() + static_cast<std::ptrdiff_t>(i * group->width);
      match.members[m].emplace_back(first, first + static_cast<std::ptrdiff_t>(group->width));
    }
  }
}

}  // namespace pw
