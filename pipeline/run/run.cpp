#include "pipeline/run/run.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/try.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/run/artifact.hpp"
#include "pipeline/run/generation.hpp"
#include "pipeline/run/op_runs.hpp"
#include "pipeline/run/rank_sequences.hpp"
#include "pipeline/run/run_steps.hpp"
#include "pipeline/symbol_values.hpp"

namespace pw {
namespace {

bool has_collectives(const Graph& graph) {
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (graph.op_of(n).traits.collective) return true;
  return false;
}

void say_graph(const RunRequest& request, const Graph& graph, const Log& log) {
  std::string names;
  for (ValueId input : graph.written_inputs())
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", graph.value_name(input),
                         name(graph.input_kind(input)));
  if (!names.empty()) log.say("writes " + names);
  if (has_collectives(graph) && request.ranks == 1 && !request.others && request.execute)
    log.say("one rank: collectives run as the identity, except for their shapes");
}

EngineList several_ranks(EngineList engines) {
  std::erase_if(engines, [](const StepEngineKind& engine) { return !engine.can.ranks; });
  return engines;
}

/// Returns the request with the paths of this process's rank.
RunRequest own_request(RunRequest request) {
  if (!request.others) return request;
  for (std::string* path : {&request.graph.path, &request.weights, &request.save, &request.expect})
    *path = of_rank(*path, request.others->rank());
  request.ranks = 1;
  return request;
}

/// Processes would overwrite each other's files.
Status check_processes(const RunRequest& request) {
  if (!request.others || request.others->size() == 1 || request.save.empty() ||
      request.save.find("{rank}") != std::string::npos)
    return {};
  return fail(error_in("ranks", "PW1201", "--save names one file for all ranks",
                       "put {rank} into its name, which becomes the rank's number"));
}

/// Cuts at collectives if pieces are captured: collectives of processes run between pieces.
RunRequest cut_at_collectives(RunRequest request, const Graph& graph) {
  const StepEngineKind* engine = find_engine(request.engines, request.backend);
  if (!request.others || engine == nullptr || !engine->can.capture) return request;
  std::set<std::string> ops(request.plan.at.begin(), request.plan.at.end());
  for (NodeId n = graph.first(); n.valid(); n = graph.next(n))
    if (graph.op_of(n).traits.collective) ops.insert(graph.op_of(n).name);
  request.plan.at.assign(ops.begin(), ops.end());
  return request;
}

/// Rejects requests that several ranks cannot run.
Status check_ranks(const RunRequest& request) {
  PW_TRY(check_number("ranks", request.ranks, 1, 64));
  if (request.ranks == 1) return {};
  for (const auto& [name, path] :
       {std::pair("--weights", &request.weights), {"--save", &request.save}})
    if (!path->empty() && path->find("{rank}") == std::string::npos)
      return fail(error_in("ranks", "PW1201", std::string(name) + " names one file for all ranks",
                           "put {rank} into its name, which becomes the rank's number"));
  if (!request.expect.empty())
    return fail(
        error_in("ranks", "PW1201", "--expect supports only one rank", "leave out --ranks"));
  if (!request.given.empty())
    return fail(error_in("ranks", "PW1201", "input tensors are supported only for one rank",
                         "leave out ranks"));
  const StepEngineKind* engine = find_engine(request.engines, request.backend);
  if (engine != nullptr && !engine->can.ranks)
    return fail(error_in("backend " + engine->name, "PW1201",
                         "it supports only one rank in a process",
                         "use one of: " + engine_names(several_ranks(request.engines))));
  return {};
}

Status check_variants(const RunRequest& request, const std::vector<GraphVariant>& variants) {
  if (!request.planned.empty()) PW_TRY(need_one(variants, "--plan applies to one graph"));
  if (!request.steps.empty())
    PW_TRY(need_one(
        variants, "--steps runs one graph, because other graphs lack a sequence's earlier tokens"));
  return {};
}

RunRecord empty_record(const RunRequest& request, const Graph& graph,
                       const std::vector<RunRecord::File>& files) {
  RunRecord record;
  record.command = request.command;
  record.files = files;
  record.graph_path = request.graph.loaded != nullptr ? "graph " + graph.name : request.graph.path;
  record.backend = request.backend;
  const StepEngineKind* engine = find_engine(request.engines, request.backend);
  if (engine != nullptr) record.captures = engine->can.capture || !request.execute;
  record.fuse = request.engine.fuse;
  record.schedules = request.engine.schedules;
  record.seed = request.engine.seed;
  record.ranks = request.others ? request.others->size() : request.ranks;
  record.collectives = has_collectives(graph);
  record.executed = request.execute;
  record.times = request.times;
  return record;
}

void prove_all(const RunRequest& request, const Graph& graph, const LoadedRules& rules,
               const std::vector<GraphVariant>& variants, std::vector<RunRecord>& records,
               const Log& log) {
  const auto proofs = prove_variants(graph, rules, request.rules.pipeline, {}, variants, log);
  for (std::size_t i = 0; i < proofs.size(); ++i) {
    log.say(proof_line(proofs[i], variants[i].name));
    records[i].proof = proofs[i];
  }
}

/// Returns the steps of each variant, by the size that its plan pads them to.
Result<std::vector<std::vector<PlannedStep>>> assigned(const RunRequest& request,
                                                       const std::vector<GraphVariant>& variants,
                                                       const std::vector<RunRecord>& records,
                                                       const std::vector<PlannedStep>& steps) {
  std::vector<std::vector<PlannedStep>> out(variants.size());
  for (const PlannedStep& planned : steps)
    out[PW_TRY(place_of(request.pad, variants, records, planned.step.tokens())).variant].push_back(
        planned);
  return out;
}

Status check_generated_run(const RunRequest& request, const Graph& graph,
                           const std::vector<PlannedStep>& steps) {
  PW_TRY(check_generation(request, graph, steps));
  if (request.generate == 0) return {};
  if (request.check || !request.expect.empty())
    return fail(error_in("generation", "PW1471", "generated steps are not compared",
                         "omit --check and --expect, or write the steps into the file of --steps"));
  return check_steps(graph, with_generated(request, steps));
}

/// Returns the graph, with a number for each symbol if steps will run.
Result<Graph> load_settled(const ContextPtr& context, const RunRequest& request, const Log& log) {
  Graph graph = PW_TRY(load_logged_graph(context, request.graph, log));
  if (request.execute)
    PW_TRY(take_extents(request, graph, log));
  else
    name_tokens(graph, log);
  return graph;
}

}  // namespace

Result<RunSummary> run_model(const ContextPtr& context, const RunRequest& given, const Log& log,
                             const RunDone& done) {
  // Load.
  PW_TRY(check_processes(given));
  const RunRequest request = PW_TRY(with_artifact(context, own_request(given), log));
  const LoadedRules rules = PW_TRY(load_rules(context, request.rules, log));
  PW_TRY(check_ranks(request));
  std::unique_ptr<StepEngine> engine;  // opened before any work is done
  if (request.execute) engine = PW_TRY(open_engine_of(request));
  const Graph graph =
      request.prepared ? request.prepared->graph : PW_TRY(load_settled(context, request, log));
  std::vector<PlannedStep> wanted;
  if (request.execute) wanted = PW_TRY(wanted_steps(request, graph));
  PW_TRY(check_generated_run(request, graph, wanted));
  say_graph(request, graph, log);

  // Rewrite: a graph for each range.
  std::vector<GraphVariant> variants =
      request.prepared
          ? request.prepared->variants
          : PW_TRY(make_variants(graph, rules, request.rules.pipeline, log, true,
                                 {.keep_transpositions = request.engine.stream_weights}));
  PW_TRY(check_variants(request, variants));

  // Split and plan.
  std::vector<RunRecord> records(
      variants.size(), empty_record(request, graph, PW_TRY(read_files(request, rules, *context))));
  for (std::size_t i = 0; i < variants.size(); ++i)
    PW_TRY(cut_and_plan(cut_at_collectives(request, variants[i].result.graph), rules, variants[i],
                        records[i], log));
  if (request.prove) prove_all(request, graph, rules, variants, records, log);
  const auto steps = PW_TRY(assigned(request, variants, records, wanted));

  if (request.others && request.execute)
    PW_TRY(check_sequences(*request.others, request.pad, variants, records, wanted));

  // Build and run.
  RunSummary summary{wanted.size(), 0};
  RunSteps all{wanted.size()};
  for (std::size_t i = 0; i < variants.size(); ++i) {
    if (request.execute && steps[i].empty() && variants.size() > 1) continue;
    if (!variants[i].name.empty()) log.say("tokens " + variants[i].name + ":");
    const std::vector<PlannedStep> all_steps = with_generated(request, steps[i]);
    PW_TRY(check_sizes(records[i].plan, all_steps));
    PW_TRY(check_conditions(graph, records[i].plan, all_steps));
    if (const StepEngineKind* kind = find_engine(request.engines, request.backend);
        request.execute && kind != nullptr)
      PW_TRY(check_kernels(variants[i].result.graph, *kind));
    if (request.execute)
      PW_TRY(run_steps(request, graph, variants[i].result.graph, *engine, steps[i], all, records[i],
                       log));
    PW_TRY(done(records[i], rules));
    summary.failed += failed_steps(records[i]);
  }
  PW_TRY(write_saved(all.saved));
  if (request.others) PW_TRY(request.others->finish());
  return summary;
}

}  // namespace pw
