// Exports Search's last gates, asked when every node has been found: closed world, guards, no cycle.
#include "graph/text.hpp"
#include "rewriter/legality.hpp"
#include "rewriter/search.hpp"

namespace pw {

bool Search::check_closed(State& state) {
  std::optional<Escape> escape = find_escape(graph_, layout_, state.nodes.raw());
  if (!escape) return ++state.gate, true;
  const PatternValue& value = rule_.values[escape->value];
  return reject(state, "N08", value.span.valid() ? value.span : rule_.nodes[value.producer].span, state.nodes[value.producer],
                [&] { return describe(graph_, layout_, *escape); });
}

bool Search::check_where(State& state) {
  for (const Expr& guard : rule_.where) {
    std::string why;
    Result<Truth> truth = evaluate_guard(context(), &graph_, guard, state.env, graph_.facts, explain_ ? &why : nullptr);
    if (truth && *truth == Truth::yes) {
      ++state.gate;
      continue;
    }
    return reject(state, "N09", guard.span, state.nodes[layout_.steps[0].node], [&] {
      if (!truth) return "`where " + print(guard) + "`: " + truth.error().front().message;
      std::string verdict = *truth == Truth::no ? " does not hold" : " cannot be proved";
      return "`where " + print(guard) + "`" + verdict + (why.empty() ? "" : ": " + why);
    });
  }
  return true;
}

bool Search::check_convex(State& state) {
  Boundary boundary = boundary_of(graph_, layout_, state.nodes.raw(), state.env);
  std::vector<NodeId> path = find_bad_path(graph_, layout_, state.nodes.raw(), boundary);
  if (path.empty()) return ++state.gate, true;
  return reject(state, "N13", rule_.name_span, path.front(), [&] { return describe_path(graph_, path); });
}

}  // namespace pw
