#include "rewriter/strategies/ranges.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "rewriter/strategies/driver.hpp"
#include "rewriter/strategies/narrowing.hpp"

namespace pw {
namespace {

SymbolFact fact_of(const Graph& graph, const std::string& symbol) {
  const SymbolFact* known = graph.facts.find(symbol);
  return known == nullptr ? SymbolFact() : *known;
}

/// Returns the part of the range that the facts allow; an empty one has min > max.
TokenRange allowed(TokenRange range, const SymbolFact& fact) {
  const std::int64_t multiple = std::max<std::int64_t>(fact.multiple, 1);
  range.min = std::max(range.min, fact.min);
  range.max = std::min(range.max, fact.max);
  const bool any = range.min <= range.max && range.max / multiple * multiple >= range.min;
  return any ? range : TokenRange{1, 0};
}

bool holds(const Dims& dims, const Condition& condition, const SymbolSizes& sizes) {
  if (!condition.a.valid() || !condition.b.valid()) return false;
  const auto a = dims.evaluate(condition.a, sizes), b = dims.evaluate(condition.b, sizes);
  if (!a || !b) return false;
  if (condition.divides) return *b != 0 && *a % *b == 0;
  switch (condition.op) {
    case Compare::eq: return *a == *b;
    case Compare::ne: return *a != *b;
    case Compare::lt: return *a < *b;
    case Compare::le: return *a <= *b;
    case Compare::gt: return *a > *b;
    case Compare::ge: return *a >= *b;
  }
  return false;
}

}  // namespace

void narrow(Graph& graph, TokenRange range) {
  const std::string symbol = tokens_symbol(graph);
  if (symbol.empty()) return;
  SymbolFact fact = fact_of(graph, symbol);
  fact.min = std::max(fact.min, range.min);
  fact.max = std::min(fact.max, range.max);
  graph.facts.symbols[symbol] = fact;
}

RuleSet without_assumptions(const RuleSet& rules) {
  RuleSet out = rules;
  for (Rule& rule : out.rules) {
    rule.where.insert(rule.where.end(), rule.assume.begin(), rule.assume.end());
    rule.assume.clear();
  }
  return out;
}

std::string tokens_symbol(const Graph& graph) {
  if (std::string declared = graph.facts.tokens(); !declared.empty()) return declared;
  std::set<std::string> symbols;
  for (ValueId input : graph.inputs()) {
    if (graph.type(input) == Types::unknown()) continue;
    for (DimId dim : graph.context().types[graph.type(input)].shape)
      for (std::string& name : graph.context().dims.symbols(dim)) symbols.insert(std::move(name));
  }
  if (symbols.contains("tokens")) return "tokens";
  return symbols.size() == 1 ? *symbols.begin() : std::string();
}

Result<std::vector<TokenRange>> token_ranges(const Graph& graph, const RuleSet& rules,
                                             std::string_view pipeline) {
  const Strategy* strategy = PW_TRY(find_strategy(rules, pipeline));
  const std::string symbol = tokens_symbol(graph);
  const SymbolFact fact = fact_of(graph, symbol);
  const std::vector<std::int64_t>& ends = strategy->ranges;
  if (ends.empty()) return std::vector<TokenRange>{{fact.min, fact.max}};
  if (symbol.empty())
    return fail(
        strategy->span, "PW1109",
        fmt::format("`{}` has token ranges, but no symbol of the graph counts tokens", pipeline),
        "declare it in the graph: `symbol n in 1..8192 tokens`");
  std::vector<TokenRange> ranges;
  std::int64_t from = 1;
  const auto add = [&](std::int64_t to) {
    const TokenRange range = allowed({from, to}, fact);
    if (range.min <= range.max) ranges.push_back(range);
    from = to + 1;
  };
  for (std::int64_t end : ends) add(end);
  if (from <= fact.max) add(fact.max);
  return ranges;
}

Result<std::vector<RangedResult>> run_range(const Graph& graph, const RuleSet& rules,
                                            std::string_view pipeline, const Env& params,
                                            TokenRange range, const RewriteOptions& options) {
  std::vector<RangedResult> out;
  const auto run = [&](const RuleSet& set, const RewriteOptions& with, bool otherwise) -> Status {
    const Strategy* strategy = PW_TRY(find_strategy(set, pipeline));
    Graph copy = graph;
    narrow(copy, range);
    RewriteReport report = PW_TRY(run_strategy(copy, set, *strategy, params, with));
    std::vector<Condition> conditions = report.conditions;
    out.push_back({range, std::move(conditions), otherwise, std::move(copy), std::move(report)});
    return {};
  };
  PW_TRY(run(rules, options, false));
  if (out.front().conditions.empty()) return out;
  RewriteOptions quiet = options;
  quiet.after_pass = nullptr;
  PW_TRY(run(without_assumptions(rules), quiet, true));
  return out;
}

Result<std::vector<RangedResult>> run_ranges(const Graph& graph, const RuleSet& rules,
                                             std::string_view pipeline, const Env& params,
                                             const RewriteOptions& options) {
  std::vector<TokenRange> ranges = PW_TRY(token_ranges(graph, rules, pipeline));
  std::vector<RangedResult> out;
  for (TokenRange range : ranges) {
    Result<std::vector<RangedResult>> some =
        run_range(graph, rules, pipeline, params, range, options);
    if (!some) return some;
    std::move(some->begin(), some->end(), std::back_inserter(out));
  }
  return out;
}

bool meets(const Context& context, std::span<const Condition> conditions,
           const SymbolSizes& sizes) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& c) { return holds(context.dims, c, sizes); });
}

const RangedResult* variant_for(std::span<const RangedResult> variants, const SymbolSizes& sizes,
                                std::int64_t tokens) {
  for (const RangedResult& variant : variants) {
    if (tokens < variant.range.min || tokens > variant.range.max) continue;
    if (meets(variant.graph.context(), variant.conditions, sizes)) return &variant;
  }
  return nullptr;
}

}  // namespace pw
