#include "pipeline/variants.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/try.hpp"
#include "dsl/embedded_rules.hpp"
#include "graph/passes/at_load.hpp"
#include "rewriter/strategies/driver.hpp"

namespace pw {
namespace {

Result<const Strategy*> strategy_of(const LoadedRules& rules, const std::string& pipeline) {
  if (pipeline.empty())
    return fail(error_in("pipeline", "PW1101", "no pipeline is given",
                         "for example -p o2; `pwr check` lists the pipelines of a rule file"));
  return find_strategy(rules.set, pipeline);
}

std::string variant_name(const Strategy& strategy, TokenRange range, bool otherwise) {
  const bool ranged = !strategy.ranges.empty();
  std::string out = ranged ? fmt::format("{}-{}", range.min, range.max) : "";
  if (!otherwise) return out;
  return out + (ranged ? ".otherwise" : "otherwise");
}

/// Collects the data for a report of the run, and with `versions` the graph after each pass.
RewriteOptions recorded(std::vector<Version>* versions, const Log& log) {
  RewriteOptions options;
  tell_progress(options, log);
  options.stats = true;
  options.hashes = true;
  if (versions != nullptr)
    options.after_pass = [versions](const std::string& pass, const Graph& graph) {
      versions->push_back({pass, graph});
    };
  return options;
}

}  // namespace

SymbolFact declared_tokens(const Graph& graph) {
  const SymbolFact* fact = graph.facts.find(tokens_symbol(graph));
  return fact == nullptr ? SymbolFact() : *fact;
}

Result<const Strategy*> one_graph_strategy(const LoadedRules& rules, const std::string& pipeline) {
  const Strategy* strategy = PW_TRY(strategy_of(rules, pipeline));
  if (!strategy->ranges.empty())
    return fail(error_in("pipeline " + pipeline, "PW1407",
                         "it makes a graph for each token range, but one graph is needed",
                         "`pwr opt` writes one file for each range, which can be used here"));
  return strategy;
}

Result<RewriteReport> rewrite(Graph& graph, const LoadedRules& rules, const std::string& pipeline,
                              const RewriteOptions& options, const Log& log) {
  PW_TRY(one_graph_strategy(rules, pipeline));
  RewriteReport report = PW_TRY(run_pipeline(graph, rules.set, pipeline, rules.params, options));
  log.warn(warnings_of(report, graph.context().sources, false));
  return report;
}

Result<std::vector<GraphVariant>> rewrite_ranges(const Graph& graph, const LoadedRules& rules,
                                                 const std::string& pipeline,
                                                 const OptionsFor& options) {
  const Strategy* strategy = PW_TRY(strategy_of(rules, pipeline));
  std::vector<GraphVariant> out;
  for (const TokenRange range : PW_TRY(token_ranges(graph, rules.set, pipeline))) {
    const std::string name = variant_name(*strategy, range, false);
    for (RangedResult& result :
         PW_TRY(run_range(graph, rules.set, pipeline, rules.params, range, options(name)))) {
      std::string own = variant_name(*strategy, result.range, result.otherwise);
      out.push_back({std::move(own), std::move(result), {}, declared_tokens(graph)});
    }
  }
  return out;
}

namespace {

void take_constants(std::vector<GraphVariant>& variants, const AtLoadOptions& options) {
  for (GraphVariant& variant : variants)
    variant.at_load = pw::take_constants(variant.result.graph, options);
}

}  // namespace

Result<std::vector<GraphVariant>> make_variants(const Graph& graph, const LoadedRules& rules,
                                                const std::string& pipeline, const Log& log,
                                                bool keep, const AtLoadOptions& at_load) {
  if (pipeline.empty()) {
    std::vector<GraphVariant> one{{"",
                                   {{1, SymbolFact().max}, {}, false, graph, {}},
                                   {{"input", graph}},
                                   declared_tokens(graph)}};
    take_constants(one, at_load);
    return one;
  }
  std::deque<std::vector<Version>> versions;  // one list for each range; their addresses are stable
  std::vector<GraphVariant> out =
      PW_TRY(rewrite_ranges(graph, rules, pipeline, [&](const std::string&) {
        versions.emplace_back();
        return recorded(keep ? &versions.back() : nullptr, log);
      }));
  for (GraphVariant& variant : out) {
    if (variant.result.otherwise) {
      variant.versions = {{"input", graph}, {"otherwise", variant.result.graph}};
    } else {
      variant.versions = std::move(versions.front());
      versions.pop_front();
      log.warn(warnings_of(variant.result.report, graph.context().sources, false));
    }
    if (!variant.result.conditions.empty())
      log.say(conditions_line(variant.result, "a second graph"));
  }
  take_constants(out, at_load);
  return out;
}

Status need_one(const std::vector<GraphVariant>& variants, const std::string& why) {
  if (variants.size() == 1) return {};
  return fail(error_in("pipeline", "PW1407",
                       "it makes a graph for each token range, but one graph is needed", why));
}

Result<std::size_t> variant_of(const std::vector<GraphVariant>& variants, std::int64_t tokens,
                               const std::function<std::int64_t(std::size_t variant)>& runs_as) {
  if (variants.size() == 1) return 0;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const RangedResult& result = variants[i].result;
    if (tokens < result.range.min || tokens > result.range.max) continue;
    const SymbolSizes sizes{{tokens_symbol(result.graph), runs_as(i)}};
    if (meets(result.graph.context(), result.conditions, sizes)) return i;
  }
  return fail(error_in("pipeline", "PW1408",
                       fmt::format("no range contains a step of {} tokens", tokens),
                       "the range of the graph's token symbol limits the number of tokens"));
}

std::string variant_path(const std::string& path, const std::string& variant) {
  if (variant.empty()) return path;
  const std::size_t dot = path.rfind('.'), slash = path.rfind('/');
  const bool extension = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  return extension ? path.substr(0, dot) + "." + variant + path.substr(dot) : path + "." + variant;
}

std::string conditions_line(const RangedResult& variant, const std::string& otherwise) {
  std::vector<std::string> texts;
  for (const Condition& condition : variant.conditions) texts.push_back(condition.text);
  return fmt::format("tokens {}..{}: valid for steps where {}; other steps use {}",
                     variant.range.min, variant.range.max, fmt::join(texts, ", "), otherwise);
}

void tell_progress(RewriteOptions& options, const Log& log) {
  options.progress = [&log](const std::string& pass, std::size_t done, std::size_t total,
                            std::string_view unit) {
    log.progress({"pass " + pass, done, total, std::string(unit)});
  };
}

Diagnostics warnings_of(const RewriteReport& report, const SourceMap& sources, bool idle) {
  const auto wanted = [&](const Diagnostic& warning) {
    if (!is_idle_warning(warning)) return true;
    return idle && !is_of_library(sources.name(warning.span.source));
  };
  Diagnostics out;
  std::copy_if(report.warnings.begin(), report.warnings.end(), std::back_inserter(out), wanted);
  return out;
}

}  // namespace pw
