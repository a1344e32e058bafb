#include "pipeline/plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/eager/eager.hpp"
#include "base/counted.hpp"
#include "base/quantities.hpp"
#include "base/try.hpp"
#include "graph/passes/at_load.hpp"
#include "pipeline/run/static_rows.hpp"
#include "pipeline/symbol_values.hpp"

namespace pw {
namespace {

/// For one of several graphs: its range, and the token facts of the original graph.
struct VariantPlace {
  std::optional<TokenRange> range;
  const SymbolFact* declared = nullptr;
};

bool outside(const std::optional<TokenRange>& range, std::int64_t size) {
  return range && (size < range->min || size > range->max);
}

/// Omits capture sizes of the rules that have fewer or more tokens than the model runs, and reports
/// them.
void keep_runnable(PlanOptions& options, std::int64_t least, const Log& log) {
  std::vector<std::int64_t>& sizes = options.capture_sizes;
  const auto cannot = std::stable_partition(sizes.begin(), sizes.end(), [&](std::int64_t size) {
    return least <= size && size <= options.max_tokens;
  });
  if (cannot == sizes.end()) return;
  const std::string instead =
      cannot == sizes.begin() ? "; none remain, so the default sizes are planned" : "";
  const std::string bounds = least > 1 ? fmt::format("{} to {}", least, options.max_tokens)
                                       : fmt::format("at most {}", options.max_tokens);
  constexpr std::ptrdiff_t kShown = 4;
  const std::ptrdiff_t count = sizes.end() - cannot,
                       more = std::max<std::ptrdiff_t>(count - kShown, 0);
  log.say(fmt::format("note: capture size{} {}{} of the rules {} omitted: a step has {} tokens{}",
                      count == 1 ? "" : "s", fmt::join(cannot, sizes.end() - more, ", "),
                      more > 0 ? fmt::format(" and {} more", more) : "", count == 1 ? "is" : "are",
                      bounds, instead));
  sizes.erase(cannot, sizes.end());
}

/// Drops the sizes and range ends of other graphs.
void keep_own(PlanOptions& options, const TokenRange& range, const Log& log) {
  const bool some = !options.capture_sizes.empty();
  const auto foreign = [&](std::int64_t size) { return outside(range, size); };
  for (auto* list : {&options.capture_sizes, &options.compile_sizes, &options.range_ends})
    std::erase_if(*list, foreign);
  if (some && options.capture_sizes.empty())
    log.say(fmt::format(
        "note: no capture size is in tokens {}..{}, so the default sizes are planned there",
        range.min, range.max));
  options.min_tokens = range.min;
}

PlanOptions stated_options(const LoadedRules& rules, const PlanRequest& request) {
  PlanOptions options;
  options.max_tokens = request.max_tokens;
  options.max_requests = request.max_requests;
  options.size_cap = request.size_cap.value_or(options.size_cap);
  options.speculative_tokens = request.speculative_tokens;
  options.sequence_parallel = request.sequence_parallel;
  const std::string& of_rules = rules.set.capture.mode;
  options.mode = !request.mode.empty() ? request.mode : !of_rules.empty() ? of_rules : "piecewise";
  options.loras = request.loras;
  options.range_ends = request.range_ends;
  options.compile_sizes = request.compile_sizes;
  options.capture_sizes =
      request.capture_sizes.empty() ? rules.set.capture.sizes : request.capture_sizes;
  return options;
}

/// Returns the graph before its range and conditions, because the padded size selects the graph of
/// a step.
Graph widened(const Graph& graph, const SymbolFact* declared) {
  Graph wide = graph;
  const auto fact = wide.facts.symbols.find(graph.facts.tokens());
  if (declared != nullptr && fact != wide.facts.symbols.end()) {
    fact->second.min = declared->min;
    fact->second.multiple = declared->multiple;
  }
  return wide;
}

Result<Plan> plan_at(const StitchedGraph& pieces, const Graph& graph, const LoadedRules& rules,
                     const PlanRequest& request, const VariantPlace& place, const Log& log) {
  PlanOptions options = stated_options(rules, request);
  std::int64_t least = 1;
  if (const SymbolFact* fact = graph.facts.find(graph.facts.tokens())) {
    options.max_tokens = std::min(options.max_tokens, fact->max);
    if (!place.range) least = (place.declared != nullptr ? place.declared : fact)->min;
  }
  if (request.capture_sizes.empty()) keep_runnable(options, least, log);
  if (request.size_cap && !options.capture_sizes.empty())
    log.say(
        "note: --size-cap has no effect: it limits the default sizes, but the rules declare "
        "sizes");
  if (place.range) keep_own(options, *place.range, log);
  Plan plan = PW_TRY(make_plan(pieces, widened(graph, place.declared), options));
  if ((!request.mode.empty() || plan.mode == "none") && !plan.mode_reason.empty())
    log.say("note: " + plan.mode_reason);
  for (const std::string& note : plan.notes) log.say("note: " + note);
  if (const std::string note = many_rows_note(graph); !note.empty()) log.say(note);
  return plan;
}

}  // namespace

Result<StitchedGraph> cut_graph(const Graph& graph, const LoadedRules& rules,
                                const PlanRequest& request) {
  SplitOptions options;
  options.at = request.at;
  options.fold = request.fold;
  options.has_kernel = has_kernel;
  std::vector<OpId> splitting;
  if (request.split)
    splitting = PW_TRY(splitting_ops(graph.context_ptr(), &rules.set, rules.params, options));
  return split(graph, splitting, options);
}

Result<Plan> plan_graph(const StitchedGraph& pieces, const Graph& graph, const LoadedRules& rules,
                        const PlanRequest& request, const Log& log) {
  return plan_at(pieces, graph, rules, request, {}, log);
}

Result<Plan> plan_variant(const StitchedGraph& pieces, const GraphVariant& variant,
                          const LoadedRules& rules, const PlanRequest& request, const Log& log) {
  const auto range =
      variant.name.empty() ? std::nullopt : std::optional<TokenRange>(variant.result.range);
  return plan_at(pieces, variant.result.graph, rules, request, {range, &variant.declared}, log);
}

Result<CutGraph> load_and_cut(const ContextPtr& context, const SplitRequest& request,
                              const Log& log) {
  LoadedRules rules = PW_TRY(load_rules(context, request.rules, log));
  Graph graph = PW_TRY(load_logged_graph(context, request.graph, log));
  name_tokens(graph, log);
  return rewrite_and_cut(std::move(graph), std::move(rules), request.rules.pipeline, request.plan,
                         log);
}

Result<CutGraph> rewrite_and_cut(Graph graph, LoadedRules rules, const std::string& pipeline,
                                 const PlanRequest& request, const Log& log) {
  if (!pipeline.empty()) PW_TRY(rewrite(graph, rules, pipeline, {}, log));
  std::optional<Graph> at_load = take_constants(graph);
  if (at_load) log.say(at_load_summary(*at_load));
  StitchedGraph pieces = PW_TRY(cut_graph(graph, rules, request));
  return CutGraph{std::move(rules), std::move(graph), std::move(pieces), std::move(at_load)};
}

std::string split_summary(const StitchedGraph& pieces) {
  const bool host = std::any_of(pieces.pieces.begin(), pieces.pieces.end(),
                                [](const Piece& piece) { return !piece.host_op.empty(); });
  const std::size_t eager = pieces.classes.size() - pieces.capturable_classes();
  return fmt::format("{}, {} capturable, {}{}", counted(pieces.pieces.size(), "piece"),
                     pieces.capturable(), counted(pieces.capturable_classes(), "class"),
                     eager
                         ? fmt::format(" (and {} {})", eager,
                                       host ? eager == 1 ? "that runs eagerly" : "that run eagerly"
                                            : "of splitting ops")
                         : "");
}

std::string at_load_summary(const Graph& at_load) {
  return fmt::format("{} computed once at load, from weights only ({})",
                     counted(at_load.outputs().size(), "tensor"),
                     counted(at_load.node_count(), "node"));
}

std::string plan_summary(const Plan& plan) {
  const std::string sizes =
      plan.capture.sizes.empty()
          ? "no capture sizes"
          : fmt::format("{} {}..{}", counted(plan.capture.sizes.size(), "capture size"),
                        plan.capture.sizes.front(), plan.capture.sizes.back());
  const std::string exact =
      plan.compile_sizes.empty()
          ? ""
          : fmt::format(" and {}", counted(plan.compile_sizes.size(), "size"));
  return fmt::format("{}, {} range{}{}, arena {} (live {}), weights {}", sizes, plan.ranges.size(),
                     plan.ranges.size() == 1 ? "" : "s", exact, bytes(plan.memory.arena_bytes),
                     bytes(plan.memory.live_bytes), bytes(plan.memory.weight_bytes));
}

}  // namespace pw
