#include "pipeline/optimize.hpp"

#include <deque>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/io/standard_output.hpp"
#include "base/try.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/gap.hpp"
#include "rewriter/matcher/match_program.hpp"

namespace pw {
namespace {

/// Writes the graphs of each variant into a separate folder. Stores the first error, and writes
/// nothing after it.
class Tracing {
 public:
  Tracing(const OptimizeRequest& request, const Log& log) : request_(request), log_(log) {}

  RewriteOptions options_for(const std::string& variant) {
    RewriteOptions rewrite = rewrite_options(request_);
    rewrite.verify_each = request_.verify_each;
    rewrite.stats = request_.stats;
    tell_progress(rewrite, log_);
    if (!request_.trace.empty() && state_) trace_into(rewrite, folder_of(variant));
    return rewrite;
  }
  /// Writes the journals; `variants` are in the requested order.
  Status finish(const std::vector<GraphVariant>& variants, const RuleSet& rules, const Log& log) {
    auto next = traces_.begin();
    for (const GraphVariant& variant : variants) {
      if (variant.result.otherwise || next == traces_.end()) continue;
      const auto& [path, trace] = *next++;
      PW_TRY(trace.finish(variant.result.report, variant.result.graph, rules));
      log.say(fmt::format("{} and the journal are in {}", counted(trace.graphs(), "graph"), path));
    }
    return {};
  }
  [[nodiscard]] const Status& state() const { return state_; }

 private:
  [[nodiscard]] std::string folder_of(const std::string& variant) const {
    return variant.empty() ? request_.trace : request_.trace + "/" + variant;
  }
  void trace_into(RewriteOptions& rewrite, const std::string& folder) {
    Result<Trace> made = Trace::make(folder);
    if (!made) {
      state_ = forward(made);
      return;
    }
    Trace& trace = traces_.emplace_back(folder, std::move(*made)).second;
    rewrite.hashes = true;
    rewrite.after_pass = [this, &trace](const std::string& pass, const Graph& graph) {
      if (state_) state_ = trace.add(pass, graph);
    };
  }

  const OptimizeRequest& request_;
  const Log& log_;
  std::deque<std::pair<std::string, Trace>> traces_;  // one for each range; never moved
  Status state_;
};

Table saturations_of(const RewriteReport& report) {
  Table table({Column("saturate", "strategy"), "by", "stop", "rounds", "forms", "before", "greedy",
               "cost", "bound", "gap", "exact", "parts", "like parts", "left"});
  for (const Saturated& found : report.saturations) {
    Cell::Counts left;
    for (const auto& [rule, matches] : found.left)
      left.emplace_back(rule, static_cast<std::int64_t>(matches));
    table.add({found.strategy, found.by, found.stop, found.rounds, found.forms, found.before,
               found.greedy, found.cost, found.bound,
               gap_cell(static_cast<double>(found.cost), static_cast<double>(found.bound)),
               yes_cell(found.exact, "no"), found.parts, found.like_parts,
               counts_cell(std::move(left))});
  }
  return table;
}

/// "saturate: bytes 1203 of 1250, at most 0.4 % above the best of 10^31 ways to choose among …".
std::string saturation_line(const Saturated& found) {
  return fmt::format("{}: {} {} of {}, {} the best of 10^{:.0f} ways to choose among {} forms",
                     found.strategy, found.by, found.cost, found.before,
                     above_text(static_cast<double>(found.cost), static_cast<double>(found.bound)),
                     found.ways, found.forms);
}

void say_conditions(const std::vector<GraphVariant>& variants, bool idle, const Log& log) {
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const RangedResult& result = variants[i].result;
    for (const Saturated& found : result.report.saturations) log.say(saturation_line(found));
    if (!result.otherwise)
      log.warn(warnings_of(result.report, result.graph.context().sources, idle));
    if (!result.conditions.empty() && i + 1 < variants.size())
      log.say(conditions_line(result, "`" + variants[i + 1].name + "`"));
  }
}

Table choices_of(const RewriteReport& report) {
  Table table({"best of", "by", "costs", "chosen"});
  for (const Choice& choice : report.choices) {
    table.add({choice.strategy, choice.by, list_cell(choice.costs, " | "), choice.chosen + 1});
  }
  return table;
}

template <class TableOf>
Table of_variants(const std::vector<GraphVariant>& variants, const TableOf& table_of) {
  std::vector<std::pair<std::string, Table>> tables;
  for (const GraphVariant& variant : variants)
    tables.emplace_back(variant.name, table_of(variant.result.report));
  return joined(tables);
}

}  // namespace

RewriteOptions rewrite_options(const OptimizeRequest& request) {
  RewriteOptions out;
  out.limits.rewrites = request.most_rewrites;
  out.engine = request.naive ? EngineKind::naive : EngineKind::compiled;
  return out;
}

Result<std::vector<GraphVariant>> optimize(const Graph& graph, const LoadedRules& rules,
                                           const OptimizeRequest& request, const Log& log) {
  Tracing tracing(request, log);
  auto variants = rewrite_ranges(graph, rules, request.pipeline, [&](const std::string& variant) {
    return tracing.options_for(variant);
  });
  PW_TRY(Status(tracing.state()));
  if (!variants) return variants;
  PW_TRY(tracing.finish(*variants, rules.set, log));
  say_conditions(*variants, request.stats, log);
  return variants;
}

Status check_graph_path(const std::string& path) {
  if (path.empty() || path.ends_with(".json") || path.ends_with(".pwg") || path.ends_with(".pwb") ||
      path.ends_with(".onnx") || names_stream(path))
    return {};
  return fail(error_at({}, "PW1426",
                       "cannot determine the format of `" + path + "` from its extension",
                       "the extensions for graphs are .json, .pwg, .pwb and .onnx"));
}

Status save_variants(const std::vector<GraphVariant>& variants, const std::string& path,
                     const Log& log) {
  if (names_stream(path) && variants.size() > 1)
    return fail(error_at({}, "PW1427",
                         fmt::format("{} graphs cannot share standard output", variants.size()),
                         "name a file: each graph is written to its own"));
  for (const GraphVariant& variant : variants) {
    const RangedResult& result = variant.result;
    const std::string file = variant_path(path, variant.name);
    log.progress({"writing " + file});
    PW_TRY(save_graph(result.graph, file));
    if (variants.size() > 1)
      log.say(fmt::format("tokens {}..{}{}: {}", result.range.min, result.range.max,
                          result.otherwise ? " otherwise" : "", file));
  }
  return {};
}

Table pass_table(const std::vector<GraphVariant>& variants) {
  return of_variants(variants, [](const RewriteReport& report) { return pass_table(report); });
}

Table rule_table(const std::vector<GraphVariant>& variants) {
  return of_variants(variants, [](const RewriteReport& report) { return rule_table(report); });
}

Table choice_table(const std::vector<GraphVariant>& variants) {
  return of_variants(variants, choices_of);
}

Table saturation_table(const std::vector<GraphVariant>& variants) {
  return of_variants(variants, saturations_of);
}

Result<std::string> matcher_text(const Graph& graph, const LoadedRules& rules,
                                 const std::string& pipeline) {
  const Strategy* strategy = rules.set.strategy(pipeline);
  if (strategy == nullptr)
    return fail(error_at({}, "PW1428", "there is no pipeline, pass or rule `" + pipeline + "`"));
  return print_programs(graph, rules.set, *strategy);
}

}  // namespace pw
