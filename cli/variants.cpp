// Exports make_variants, variant_of.
#include "cli/variants.hpp"

#include <fmt/format.h>

namespace pw::cli {

std::vector<Variant> make_variants(const Session& session, const Graph& graph,
                                   const LoadedRules& rules, const std::string& pipeline,
                                   bool keep) {
  const SymbolFact* fact = graph.facts.find(tokens_symbol(graph));
  const SymbolFact declared = fact == nullptr ? SymbolFact() : *fact;
  if (pipeline.empty())
    return {{"", {{1, SymbolFact().max}, {}, false, graph, {}}, {{"input", graph}}, declared}};
  std::vector<std::vector<Version>> versions;  // one list a range
  const OptionsFor options = [&](const std::string&) {
    const std::size_t range = versions.size();
    versions.emplace_back();
    RewriteOptions rewrite;
    rewrite.stats = true;
    rewrite.hashes = true;
    if (keep)
      rewrite.after_pass = [&versions, range](const std::string& pass, const Graph& g) {
        versions[range].push_back({pass, g});
      };
    return rewrite;
  };
  std::vector<Variant> out;
  std::size_t range = 0;
  for (RangedResult& result : rewritten_variants(session, graph, rules, pipeline, options)) {
    const std::string name = variant_name(rules, pipeline, result);
    Variant variant{name, std::move(result), {}, declared};
    if (variant.result.otherwise)
      variant.versions = {{"input", graph}, {"otherwise", variant.result.graph}};
    else
      variant.versions = std::move(versions[range++]);
    if (!variant.result.otherwise) report_warnings(session, variant.result.report, false);
    if (!variant.result.conditions.empty())
      say_conditions(session, variant.result, "a second graph");
    out.push_back(std::move(variant));
  }
  return out;
}

std::size_t variant_of(const Session& session, const std::vector<Variant>& variants,
                       std::int64_t tokens,
                       const std::function<std::int64_t(std::size_t variant)>& runs_as) {
  if (variants.size() == 1) return 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const RangedResult& result = variants[i].result;
    if (tokens < result.range.min || tokens > result.range.max) continue;
    const SymbolSizes sizes{{tokens_symbol(result.graph), runs_as(i)}};
    if (meets(*session.context, result.conditions, sizes)) return i;
  }
  session.die(fmt::format("no range of the pipeline holds a step of {} tokens", tokens),
              "the graph's token symbol says how many there may be", kUsage);
}

}  // namespace pw::cli
