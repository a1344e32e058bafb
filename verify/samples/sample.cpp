#include "verify/samples/sample.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "backends/collectives.hpp"
#include "backends/program.hpp"
#include "exec/runner.hpp"
#include "rewriter/strategies/ranges.hpp"

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

bool divides_evenly(const Graph& graph, const Symbols& symbols) {
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    if (!among(graph.op_of(node).primitive, {Primitive::reduce_scatter, Primitive::shard}))
      continue;
    const auto whole = extents_of(graph, graph.operand(node, 0), symbols),
               part = extents_of(graph, graph.result(node), symbols);
    const Attribute* world = graph.attribute(node, "world");
    const auto* ranks = world == nullptr ? nullptr : std::get_if<std::int64_t>(world);
    if (!whole || !part || ranks == nullptr) return false;
    if (element_count(*whole) != *ranks * element_count(*part)) return false;
  }
  return true;
}

std::int64_t ranks_needed(const Graph& graph) {
  std::int64_t ranks = 1;
  bool collective = false;
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node))
    collective = collective || find_collective(graph.op_of(node).primitive) != nullptr;
  const auto groups = stated_groups(graph);
  if (!collective || !groups) return 1;
  for (const auto& [name, group] : *groups)
    ranks = std::lcm(ranks, std::max<std::int64_t>(group.size, 1));
  return groups->empty() ? 2 : ranks;
}

std::optional<std::int64_t> fitting_tokens(std::span<const Graph* const> graphs,
                                           std::span<const Condition> conditions,
                                           std::int64_t least, std::int64_t most) {
  for (std::int64_t tokens = least; tokens <= most; ++tokens) {
    const Symbols symbols = sample_symbols(*graphs.front(), tokens);
    const bool fits = std::all_of(graphs.begin(), graphs.end(), [&](const Graph* graph) {
      return meets(graph->context(), conditions, symbols) && divides_evenly(*graph, symbols);
    });
    if (fits) return tokens;
  }
  return std::nullopt;
}

namespace {

/// For a graph without a symbol: the number of rows that its sequence ops read, so that none is
/// padding.
std::int64_t static_tokens(const Graph& graph) {
  for (NodeId node = graph.first(); node.valid(); node = graph.next(node)) {
    if (!graph.op_of(node).traits.splitting || graph.operand_count(node) == 0) continue;
    const auto extents = extents_of(graph, graph.operand(node, 0), {});
    if (extents && !extents->empty() && extents->front() > 0) return extents->front();
  }
  return 1;
}

}  // namespace

Step sample_step(const Graph& graph, const Symbols& symbols) {
  const auto found = symbols.find(sized_symbol(graph));
  const std::int64_t tokens = found == symbols.end() ? static_tokens(graph) : found->second;
  if (tokens < 2) return one_sequence(tokens);
  return {{{0, tokens / 2, 0}, {1, tokens - tokens / 2, 0}}};
}

}  // namespace pw
