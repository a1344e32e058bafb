// Gates after the last node: lists (N04, N07), closedness (N08), `where` (N09; N06 if undecidable),
// `assume` (N09; undecided ones become conditions), `unless` (N09), and cycles (N13).
//
// The cheap ones come first, and convexity, which may search the graph, last. `unless` is
// negation as failure (Clark 1978): a nested search for what must be absent, with the bindings of
// the match, whose own failures are not recorded. Invariant: no gate binds a name that an earlier
// gate has read. Cost: linear in the match, except for `unless` and convexity.
#include "rewriter/matcher/final_gates.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "rewriter/engine/conditions.hpp"
#include "rewriter/engine/legality.hpp"

namespace pw {
namespace {

/// Returns "; known: n in 1..8192, a multiple of 8". Few graphs have more than one or two symbols.
std::string known_facts(const Facts& facts) {
  constexpr std::size_t kShown = 4;
  std::string out;
  std::size_t shown = 0;
  for (const auto& [symbol, fact] : facts.symbols) {
    if (shown++ == kShown) return out + ", …";
    out +=
        fmt::format("{}{} in {}..{}", out.empty() ? "; known: " : ", ", symbol, fact.min, fact.max);
    if (fact.multiple > 1) out += fmt::format(" and a multiple of {}", fact.multiple);
  }
  return out;
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

bool FinalGates::check_closed(SearchState& state, const Match& match) {
  if (scope_.equal != nullptr) return ++state.gate, true;
  if (std::optional<Escape> escape = find_escape(graph_, layout_, match)) {
    const PatternValue& value = rule_.values[escape->value];
    return scope_.reject(state, "N08",
                         value.span.valid() ? value.span : rule_.nodes[value.producer].span,
                         escape->producer, [&] { return describe(graph_, layout_, *escape); });
  }
  // Distinct values may coincide, but the right side cannot read a value that the match removes.
  const NodeSet own(own_nodes(graph_, layout_, match));
  for (const std::string& name : layout_.reads)
    for (ValueId value : bound_values(state.env, name)) {
      NodeId producer = value.valid() ? graph_.producer(value) : NodeId();
      if (!producer.valid() || !own.contains(producer)) continue;
      return scope_.reject(state, "N08", rule_.values[rule_.value_named(name)].span, producer, [&] {
        return fmt::format("`{}` is %{} here, which the rule replaces, and the right side reads it",
                           name, graph_.value_name(value));
      });
    }
  return ++state.gate, true;
}

/// Checks `where`: N09 if false, N06 with the known facts if undecided.
bool FinalGates::check_where(SearchState& state) {
  for (const Expr& guard : rule_.where) {
    std::string why;
    Result<Truth> truth = evaluate_guard(scope_.context(), &graph_, guard, state.env, graph_.facts,
                                         scope_.explain ? &why : nullptr);
    if (truth && *truth == Truth::yes) {
      ++state.gate;
      continue;
    }
    bool unknown = truth && *truth == Truth::unknown;
    return scope_.reject(state, unknown ? "N06" : "N09", guard.span, scope_.anchor, [&] {
      if (!truth) return "where " + print(guard) + ": " + truth.error().front().message;
      if (why.empty()) why = "`" + print(guard) + "` is " + (unknown ? "not known" : "false");
      return "where " + why + (unknown ? known_facts(graph_.facts) : "");
    });
  }
  return true;
}

/// Checks `assume`: N09 if refuted; an undecided one becomes a condition of the match.
bool FinalGates::check_assume(SearchState& state, Match& match) {
  for (const Expr& guard : rule_.assume) {
    std::string why;
    Result<Truth> truth = evaluate_guard(scope_.context(), &graph_, guard, state.env, graph_.facts,
                                         scope_.explain ? &why : nullptr);
    if (truth && *truth == Truth::unknown)
      note_conditions(scope_.context(), graph_, guard, state.env, match.conditions);
    if (truth && *truth != Truth::no) {
      ++state.gate;
      continue;
    }
    return scope_.reject(state, "N09", guard.span, scope_.anchor, [&] {
      if (!truth) return "assume " + print(guard) + ": " + truth.error().front().message;
      return "assume " + (why.empty() ? "`" + print(guard) + "` is false" : why);
    });
  }
  return true;
}

/// Checks that what `unless` describes is absent among nodes that are not matched.
bool FinalGates::check_absent(SearchState& state) {
  for (std::size_t i = 0; i < rule_.unless.size(); ++i) {
    NodeId found;
    scope_.quiet = true;
    const bool there = is_there(layout_.unless[i], 0, state, found);
    scope_.quiet = false;
    if (there)
      return scope_.reject(state, "N09", rule_.unless[i].span, found, [&] {
        return fmt::format("unless {{ … }}: {} is there", scope_.shown(found));
      });
    ++state.gate;
  }
  return true;
}

bool FinalGates::is_there(const std::vector<SearchStep>& steps, std::size_t index,
                          const SearchState& before, NodeId& found) {
  if (index == steps.size()) {
    SearchState state = before;
    return nodes_.run_deferred(state, true);
  }
  const SearchStep& step = steps[index];
  for (NodeId node : candidates(step, before)) {
    SearchState start = before;
    if (!nodes_.admit(step, node, start)) continue;
    start.nodes[step.node] = node;
    for (int swapped = 0; swapped <= (nodes_.commutes(step.node, node) ? 1 : 0); ++swapped) {
      SearchState state = start;
      if (!nodes_.bind_node(step.node, node, swapped == 1, state)) continue;
      if (!is_there(steps, index + 1, state, found)) continue;
      found = node;
      return true;
    }
  }
  return false;
}

std::vector<NodeId> FinalGates::candidates(const SearchStep& step, const SearchState& state) const {
  if (step.from != SearchStep::From::producer) return nodes_.users_to_try(step, state);
  return scope_.producers(nodes_.connector_of(step, state));
}

bool FinalGates::check_convex(SearchState& state, const Match& match) {
  if (scope_.equal != nullptr) return ++state.gate, true;
  Boundary boundary = boundary_of(graph_, layout_, match);
  std::vector<NodeId> path = find_bad_path(graph_, layout_, match, boundary);
  if (path.empty()) return ++state.gate, true;
  scope_.in_the_way.insert(scope_.in_the_way.end(), path.begin(), path.end());
  return scope_.reject(state, "N13", rule_.name_span, path.front(),
                       [&] { return describe_path(graph_, path); });
}

/// Adds lists of values to the environment last, so that no earlier copy holds them.
bool FinalGates::bind_lists(SearchState& state) {
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
      std::optional<Binding> list = list_of(scope_.context(), elements);
      if (!list)
        return scope_.reject(state, "N04", rule_.members[id].span, group->nodes.front(), [&] {
          return fmt::format("`{}` contains elements that lists do not support", names[j]);
        });
      state.env.insert_or_assign(names[j], std::move(*list));
    }
  }
  return true;
}

/// Checks that a reader of the results of members reads all of them, in their order.
bool FinalGates::check_read(const SearchState& state, const Match& match) {
  for (std::size_t i = 0; i < rule_.nodes.size(); ++i) {
    const PatternNodeId id(i);
    const NodeId node = match.nodes[i];
    const std::optional<std::size_t> slot = node.valid() ? scope_.list_at(id) : std::nullopt;
    if (!slot) continue;
    const PatternValueId list = rule_.nodes[id].operands[*slot];
    const PatternNodeId maker = rule_.values[list].producer;
    if (!maker.valid() || !rule_.nodes[maker].members.valid()) continue;
    const std::vector<ValueId> wanted = result_values(graph_, rule_, match, list);
    const std::size_t taken = graph_.operand_count(node) + 1 - rule_.nodes[id].operands.size();
    std::vector<ValueId> read;
    for (std::size_t k = 0; k < taken; ++k) read.push_back(graph_.operand(node, *slot + k));
    if (!scope_.same(wanted, read))
      return scope_.reject(state, "N07", rule_.nodes[id].span, node, [&] {
        return fmt::format("{} does not read the {} members in their order", scope_.shown(node),
                           wanted.size());
      });
  }
  return true;
}

void FinalGates::list_members(const SearchState& state, Match& match) const {
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
