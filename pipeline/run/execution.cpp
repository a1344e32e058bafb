#include "pipeline/run/execution.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/counted.hpp"
#include "base/io/file.hpp"
#include "base/io/file_kind.hpp"
#include "base/try.hpp"
#include "engines/run_given.hpp"
#include "exec/dispatch.hpp"
#include "exec/named_tensors.hpp"
#include "graph/infer/symbol_fact.hpp"
#include "pipeline/run/artifact.hpp"
#include "pipeline/run/static_rows.hpp"
#include "splitter/plan_text.hpp"
#include "tensor/safetensors.hpp"

namespace pw {
namespace {

constexpr std::int64_t kUsualTokens[] = {1, 7, 16, 300};

/// Returns the only size of a graph without a token symbol; otherwise the sizes in its range.
std::vector<std::int64_t> usual_tokens(const Graph& graph) {
  const std::string symbol = graph.facts.tokens();
  if (symbol.empty()) return {tokens_of_step(graph, {})};
  std::vector<std::int64_t> out;
  for (const std::int64_t t : kUsualTokens)
    if (check_declared(graph, t)) out.push_back(t);
  return out.empty() ? std::vector{graph.facts.find(symbol)->min} : out;
}

Result<std::vector<PlannedStep>> stated_steps(const ExecutionRequest& request, const Graph& graph) {
  if (!request.steps.empty())
    return parse_steps(PW_TRY(read_text_file(request.steps, "a file of steps")), request.steps);
  std::vector<std::int64_t> tokens = request.tokens;
  if (tokens.empty()) tokens = usual_tokens(graph);
  std::vector<PlannedStep> out;
  for (const std::int64_t t : tokens) out.push_back({one_sequence(t), {}});
  return out;
}

Status give_file(const ExecutionRequest& request, const Graph& graph, Weights& weights,
                 const Log& log, std::int64_t rank) {
  const std::string path = of_rank(request.weights, rank);
  const bool its_own = path == request.graph.path;
  const Safetensors file = PW_TRY(Safetensors::open(path, its_own ? request.graph.number : 0));
  TensorMap map;
  if (!request.map.empty())
    map = PW_TRY(TensorMap::parse(PW_TRY(read_text_file(request.map, "a map of weights in JSON")),
                                  request.map));
  const GivenTensors given = PW_TRY(give_tensors(graph, file, map, weights));
  log.say(fmt::format(
      "{} {} of {}, {} {} generated from the seed; {} {} not used{}",
      counted(given.inputs, "input"), given.inputs == 1 ? "is a tensor" : "are tensors", path,
      given.of_seed, are(given.of_seed), counted(given.unused.size(), "tensor"),
      are(given.unused.size()),
      given.unused.empty() ? ""
                           : ": " + given.unused.front() + (given.unused.size() > 1 ? ", …" : "")));
  return {};
}

/// Returns the plan of an artifact, on pieces that are cut as when it was compiled.
Status take_prepared(const ExecutionRequest& request, const LoadedRules& rules,
                     const GraphVariant& variant, RunRecord& record) {
  const PreparedRun& prepared = *request.prepared;
  std::size_t i = 0;
  while (prepared.variants[i].name != variant.name) ++i;
  PlanRequest plan = request.plan;
  plan.at = prepared.artifact->variants[i].split_at;
  record.pieces = PW_TRY(cut_graph(variant.result.graph, rules, plan));
  // Its sizes are those of the graph before ranges and conditions narrowed it.
  Graph declared = variant.result.graph;
  if (const std::string tokens = tokens_symbol(declared); !tokens.empty())
    declared.facts.symbols[tokens] = variant.declared;
  record.plan = PW_TRY(bind_plan(prepared.plans[i], *record.pieces, declared));
  return {};
}

bool fits(const Tensor& tensor, const Type& type, const Dims& dims) {
  const Extents& extents = tensor.view().extents;
  if (tensor.dtype() != type.dtype || extents.size() != type.shape.size()) return false;
  for (std::size_t i = 0; i < extents.size(); ++i)
    if (const auto extent = dims.value(type.shape[i]); extent && *extent != extents[i])
      return false;  // dims of symbols are compared when a step has numbers for them
  return true;
}

Status check_given(const Graph& graph, const std::string& name, const Tensor& tensor) {
  std::vector<std::string> names;
  for (ValueId v : graph.inputs()) {
    names.emplace_back(graph.value_name(v));
    if (names.back() != name) continue;
    const TypeId type = graph.type(v);
    const Context& context = graph.context();
    if (type == Types::unknown() || fits(tensor, context.types[type], context.dims)) return {};
    return fail(
        error_in("input " + name, "PW1411",
                 fmt::format("it is {}, but the given tensor is {}[{}]", context.types.print(type),
                             pw::name(tensor.dtype()), fmt::join(tensor.view().extents, ", "))));
  }
  const std::string near = nearest(name, names);
  return fail(error_in("input " + name, "PW1411", "the graph has no such input",
                       near.empty() ? "" : "did you mean `" + near + "`?"));
}

}  // namespace

Result<std::vector<PlannedStep>> wanted_steps(const ExecutionRequest& request, const Graph& graph) {
  std::vector<PlannedStep> steps = PW_TRY(stated_steps(request, graph));
  PW_TRY(check_steps(graph, steps));
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i].number = i;
  return steps;
}

Status check_steps(const Graph& graph, const std::vector<PlannedStep>& steps) {
  for (const PlannedStep& planned : steps) {
    PW_TRY(check_declared(graph, planned.step.tokens()));
    PW_TRY(check_static_rows(graph, planned.step.tokens()));
  }
  return {};
}

Status check_sizes(const Plan& plan, const std::vector<PlannedStep>& steps) {
  for (const PlannedStep& planned : steps)
    if (const std::int64_t t = planned.step.tokens(); plan.max_tokens > 0 && t > plan.max_tokens)
      return fail(error_in(
          "plan", "PW1408",
          fmt::format("a step of {} tokens exceeds the plan's maximum of {}", t, plan.max_tokens),
          "raise --max-tokens, or the maximum of the graph's token symbol"));
  return {};
}

Status check_conditions(const Graph& graph, const Plan& plan,
                        const std::vector<PlannedStep>& steps) {
  if (!graph.facts.conditions) return {};
  for (const PlannedStep& planned : steps)
    PW_TRY(check_conditions(graph, symbols_at(plan, planned.step.tokens())));
  return {};
}

std::string of_rank(std::string path, std::int64_t rank) {
  constexpr std::string_view kRank = "{rank}";
  for (std::size_t at = 0; (at = path.find(kRank, at)) != std::string::npos;)
    path.replace(at, kRank.size(), std::to_string(rank));
  return path;
}

Status give_contents_of(const ExecutionRequest& request, const Graph& graph, Weights& weights,
                        const Log& log, std::int64_t rank) {
  for (const auto& [name, tensor] : contents_of_inputs(graph)) weights.give(name, tensor);
  if (!request.weights.empty()) PW_TRY(give_file(request, graph, weights, log, rank));
  for (const auto& [name, tensor] : request.given) {
    PW_TRY(check_given(graph, name, tensor));
    weights.give(name, tensor);
  }
  return {};
}

Status cut_and_plan(const ExecutionRequest& request, const LoadedRules& rules,
                    GraphVariant& variant, RunRecord& record, const Log& log) {
  record.variant = variant.name;
  record.versions = std::move(variant.versions);
  record.rewrite = variant.result.report;
  record.at_load = variant.at_load;
  if (request.prepared) return take_prepared(request, rules, variant, record);
  record.pieces = PW_TRY(cut_graph(variant.result.graph, rules, request.plan));
  if (request.planned.empty()) {
    record.plan = PW_TRY(plan_variant(*record.pieces, variant, rules, request.plan, log));
    return {};
  }
  const PlanDocument document = PW_TRY(plan_from_json(
      PW_TRY(read_text_file(request.planned, "a plan.json", "piecewise.plan/1")), request.planned));
  record.plan = PW_TRY(bind_plan(document, *record.pieces, variant.result.graph));
  return {};
}

Result<std::unique_ptr<StepExecutable>> build_executable(StepEngine& engine, const Graph& graph,
                                                         RunRecord& record, Weights& weights,
                                                         const Log& log) {
  record.arch = engine.arch();
  log.progress({"compiling"});
  auto executable = PW_TRY(engine.build({graph, *record.pieces, record.plan}, weights));
  EngineReport report = executable->report();
  for (const std::string& line : report.built) log.say(line);
  if (report.memory) record.plan.memory = std::move(*report.memory);
  record.cpu = std::move(report.cpu);
  record.kernels = std::move(report.kernels);
  record.build_times = std::move(report.times);
  return executable;
}

Status compute_at_load(StepEngine& engine, const RunRecord& record, std::span<Weights> ranks,
                       Communicator* others, const Log& log) {
  if (!record.at_load) return {};
  const Graph& at_load = *record.at_load;
  Step step = one_sequence(1);
  step.ranks = others;
  RankOutputs outputs = PW_TRY(run_whole(at_load, engine.whole(), ranks, step));
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t i = 0; i < outputs[rank].size(); ++i) {
      const ValueId output = at_load.outputs()[i];
      ranks[rank].add(at_load.value_name(output), at_load.type(output),
                      std::move(outputs[rank][i]));
    }
  log.say(at_load_summary(at_load));
  return {};
}

void finish_record(const StepExecutable& executable, RunRecord& record, const Log& log) {
  EngineCounts counts = executable.counts();
  for (const std::string& note : counts.notes) log.say("  " + note);
  record.device = std::move(counts.counters);
}

}  // namespace pw
