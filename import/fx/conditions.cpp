#include "import/fx/conditions.hpp"

#include <algorithm>
#include <set>

namespace pw::fx {
namespace {

std::set<std::string> symbols_of_inputs(const Graph& graph) {
  const Context& context = graph.context();
  std::set<std::string> out;
  for (const ValueId input : graph.inputs())
    if (graph.type(input) != Types::unknown())
      for (const DimId dim : context.types[graph.type(input)].shape)
        for (std::string& symbol : context.dims.symbols(dim)) out.insert(std::move(symbol));
  return out;
}

}  // namespace

void settle_conditions(Graph& graph, Symbols& symbols, FxReport& report) {
  Dims& dims = graph.context().dims;
  const std::set<std::string> known = symbols_of_inputs(graph);
  const auto is_known = [&](DimId side) {
    const std::vector<std::string> names = dims.symbols(side);
    return std::ranges::all_of(names,
                               [&](const std::string& name) { return known.contains(name); });
  };
  SizeConditions checked;
  for (SizeCondition& condition : report.checked) {
    condition.left = symbols.merged(condition.left);
    condition.right = symbols.merged(condition.right);
    if (dims.prove(condition.op, condition.left, condition.right, graph.facts) == Truth::yes)
      continue;
    if (is_known(condition.left) && is_known(condition.right))
      checked.push_back(std::move(condition));
    else
      report.unchecked.push_back(std::move(condition.text));
  }
  if (!checked.empty()) graph.facts.conditions = std::make_shared<const SizeConditions>(checked);
  report.checked = std::move(checked);
}

}  // namespace pw::fx
