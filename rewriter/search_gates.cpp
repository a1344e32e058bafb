// Exports Search's last gates, asked when every node has been found: closed world, guards, no
// cycle.
#include <algorithm>

#include <fmt/format.h>

#include "graph/text.hpp"
#include "rewriter/legality.hpp"
#include "rewriter/search.hpp"

namespace pw {
namespace {

/// "; known: n in 1..8192, a multiple of 8". Few graphs have more than one or two symbols.
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

bool Search::check_closed(State& state) {
  if (std::optional<Escape> escape = find_escape(graph_, layout_, state.nodes.raw())) {
    const PatternValue& value = rule_.values[escape->value];
    return reject(state, "N08", value.span.valid() ? value.span : rule_.nodes[value.producer].span,
                  state.nodes[value.producer], [&] { return describe(graph_, layout_, *escape); });
  }
  // Distinct values may coincide, but the right side cannot read what goes away with the match.
  for (const std::string& name : layout_.reads) {
    PatternValueId id = rule_.value_named(name);
    NodeId producer = state.values[id].valid() ? graph_.producer(state.values[id]) : NodeId();
    bool own = producer.valid() &&
               std::any_of(layout_.own.begin(), layout_.own.end(),
                           [&](PatternNodeId n) { return state.nodes[n] == producer; });
    if (own)
      return reject(state, "N08", rule_.values[id].span, producer, [&] {
        return fmt::format("`{}` is %{} here, which the rule replaces, and the right side reads it",
                           name, graph_.value_name(state.values[id]));
      });
  }
  return ++state.gate, true;
}

/// False is N09. What can be neither proved nor refuted is N06, with what is known.
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
    return reject(state, unknown ? "N06" : "N09", guard.span, state.nodes[layout_.steps[0].node],
                  [&] {
                    if (!truth)
                      return "where " + print(guard) + ": " + truth.error().front().message;
                    if (why.empty())
                      why = "`" + print(guard) + "` is " + (unknown ? "not known" : "false");
                    return "where " + why + (unknown ? known_facts(graph_.facts) : "");
                  });
  }
  return true;
}

bool Search::check_convex(State& state) {
  Boundary boundary = boundary_of(graph_, layout_, state.nodes.raw(), state.env);
  std::vector<NodeId> path = find_bad_path(graph_, layout_, state.nodes.raw(), boundary);
  if (path.empty()) return ++state.gate, true;
  return reject(state, "N13", rule_.name_span, path.front(),
                [&] { return describe_path(graph_, path); });
}

}  // namespace pw
