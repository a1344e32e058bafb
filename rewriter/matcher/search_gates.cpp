// Gates after the last node: closedness (N08), `where` (N09; N06 if undecidable), `assume` (N09;
// undecided ones become conditions), `unless` (N09), and cycles (N13).
#include <algorithm>

#include <fmt/format.h>

#include "graph/text/text.hpp"
#include "rewriter/engine/conditions.hpp"
#include "rewriter/engine/legality.hpp"
#include "rewriter/matcher/search.hpp"

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

}  // namespace

bool Search::check_closed(State& state, const Match& match) {
  if (equal_ != nullptr) return ++state.gate, true;
  if (std::optional<Escape> escape = find_escape(graph_, layout_, match)) {
    const PatternValue& value = rule_.values[escape->value];
    return reject(state, "N08", value.span.valid() ? value.span : rule_.nodes[value.producer].span,
                  escape->producer, [&] { return describe(graph_, layout_, *escape); });
  }
  // Distinct values may coincide, but the right side cannot read a value that the match removes.
  const NodeSet own(own_nodes(graph_, layout_, match));
  for (const std::string& name : layout_.reads)
    for (ValueId value : values_of(name, state)) {
      NodeId producer = value.valid() ? graph_.producer(value) : NodeId();
      if (!producer.valid() || !own.contains(producer)) continue;
      return reject(state, "N08", rule_.values[rule_.value_named(name)].span, producer, [&] {
        return fmt::format("`{}` is %{} here, which the rule replaces, and the right side reads it",
                           name, graph_.value_name(value));
      });
    }
  return ++state.gate, true;
}

/// Returns the values that a name of a value or of a list is bound to.
std::vector<ValueId> Search::values_of(const std::string& name, const State& state) {
  const auto bound = state.env.find(name);
  if (bound == state.env.end()) return {};
  if (const auto* value = std::get_if<ValueId>(&bound->second)) return {*value};
  if (const auto* list = std::get_if<std::vector<ValueId>>(&bound->second)) return *list;
  return {};
}

/// Checks `where`: N09 if false, N06 with the known facts if undecided.
bool Search::check_where(State& state) {
  for (const Expr& guard : rule_.where) {
    std::string why;
    Result<Truth> truth = evaluate_guard(context(), &graph_, guard, state.env, graph_.facts,
                                         explain_ ? &why : nullptr);
    if (truth && *truth == Truth::yes) {
      ++state.gate;
      continue;
    }
    bool unknown = truth && *truth == Truth::unknown;
    return reject(state, unknown ? "N06" : "N09", guard.span, anchor_, [&] {
      if (!truth) return "where " + print(guard) + ": " + truth.error().front().message;
      if (why.empty()) why = "`" + print(guard) + "` is " + (unknown ? "not known" : "false");
      return "where " + why + (unknown ? known_facts(graph_.facts) : "");
    });
  }
  return true;
}

/// Checks `assume`: N09 if refuted; an undecided one becomes a condition of the match.
bool Search::check_assume(State& state, Match& match) {
  for (const Expr& guard : rule_.assume) {
    std::string why;
    Result<Truth> truth = evaluate_guard(context(), &graph_, guard, state.env, graph_.facts,
                                         explain_ ? &why : nullptr);
    if (truth && *truth == Truth::unknown)
      note_conditions(context(), graph_, guard, state.env, match.conditions);
    if (truth && *truth != Truth::no) {
      ++state.gate;
      continue;
    }
    return reject(state, "N09", guard.span, anchor_, [&] {
      if (!truth) return "assume " + print(guard) + ": " + truth.error().front().message;
      return "assume " + (why.empty() ? "`" + print(guard) + "` is false" : why);
    });
  }
  return true;
}

/// Checks that what `unless` describes is absent among nodes that are not matched.
bool Search::check_absent(State& state) {
  for (std::size_t i = 0; i < rule_.unless.size(); ++i) {
    NodeId found;
    quiet_ = true;
    const bool there = is_there(layout_.unless[i], 0, state, found);
    quiet_ = false;
    if (there)
      return reject(state, "N09", rule_.unless[i].span, found,
                    [&] { return fmt::format("unless {{ … }}: {} is there", shown(found)); });
    ++state.gate;
  }
  return true;
}

bool Search::is_there(const std::vector<SearchStep>& steps, std::size_t index, const State& before,
                      NodeId& found) {
  if (index == steps.size()) {
    State state = before;
    return run_deferred(state, true);
  }
  const SearchStep& step = steps[index];
  for (NodeId node : candidates(step, before)) {
    State start = before;
    if (!admit(step, node, start)) continue;
    start.nodes[step.node] = node;
    for (int swapped = 0; swapped <= (commutes(step.node, node) ? 1 : 0); ++swapped) {
      State state = start;
      if (!bind_node(step.node, node, swapped == 1, state)) continue;
      if (!is_there(steps, index + 1, state, found)) continue;
      found = node;
      return true;
    }
  }
  return false;
}

std::vector<NodeId> Search::candidates(const SearchStep& step, const State& state) const {
  if (step.from != SearchStep::From::producer) return users_to_try(step, state);
  return producers(connector_of(step, state));
}

bool Search::check_convex(State& state, const Match& match) {
  if (equal_ != nullptr) return ++state.gate, true;
  Boundary boundary = boundary_of(graph_, layout_, match);
  std::vector<NodeId> path = find_bad_path(graph_, layout_, match, boundary);
  if (path.empty()) return ++state.gate, true;
  in_the_way_.insert(in_the_way_.end(), path.begin(), path.end());
  return reject(state, "N13", rule_.name_span, path.front(),
                [&] { return describe_path(graph_, path); });
}

}  // namespace pw
