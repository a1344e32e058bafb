// Exports sample sizes.
#include "verify/sample.hpp"

#include <algorithm>
#include <set>

#include "backends/runner.hpp"

namespace pw {
namespace {

std::set<std::string> symbols_of(const Graph& graph) {
  std::set<std::string> names;
  const auto add = [&](ValueId value) {
    if (graph.type(value) == Types::unknown()) return;
    for (DimId dim : graph.context().types[graph.type(value)].shape) {
      for (const std::string& name : graph.context().dims.symbols(dim)) names.insert(name);
    }
  };
  for (ValueId input : graph.inputs()) add(input);
  for (NodeId node : graph.order()) {
    for (std::size_t r = 0; r < graph.result_count(node); ++r) add(graph.result(node, r));
  }
  return names;
}

}  // namespace

std::string sized_symbol(const Graph& graph) {
  if (const std::string tokens = graph.facts.tokens(); !tokens.empty()) return tokens;
  const std::set<std::string> names = symbols_of(graph);
  return names.count("n") != 0 ? "n" : names.empty() ? "" : *names.begin();
}

Symbols sample_symbols(const Graph& graph, std::int64_t tokens) {
  const std::string sized = sized_symbol(graph);
  Symbols symbols;
  std::int64_t other = 2;
  for (const std::string& name : symbols_of(graph)) {
    std::int64_t value = name == sized ? tokens : ++other;
    if (const SymbolFact* fact = graph.facts.find(name)) {
      const std::int64_t multiple = std::max<std::int64_t>(fact->multiple, 1);
      value = (std::max(value, fact->min) + multiple - 1) / multiple * multiple;
      value = std::min(value, fact->max);
    }
    symbols[name] = value;
  }
  return symbols;
}

Step sample_step(const Graph& graph, const Symbols& symbols) {
  const auto found = symbols.find(sized_symbol(graph));
  const std::int64_t tokens = found == symbols.end() ? 1 : found->second;
  if (tokens < 2) return one_sequence(tokens);
  return {{{0, tokens / 2, 0}, {1, tokens - tokens / 2, 0}}};
}

}  // namespace pw
