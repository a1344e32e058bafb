#include <variant>

#include <pybind11/stl.h>

#include "base/try.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/report/report.hpp"
#include "pipeline/run/artifact.hpp"
#include "pipeline/run/bench.hpp"
#include "pipeline/run/generation.hpp"
#include "pipeline/run/run.hpp"
#include "python/engines.hpp"
#include "python/host_call.hpp"
#include "python/module.hpp"
#include "python/options.hpp"
#include "verify/numeric.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Returns rows as `--format json` prints them.
py::object rows_of(const Table& table) { return from_json(table.print("json")); }

py::list outputs_of(const RunRecord& record) {
  const Graph& graph = record.versions.front().graph;
  py::list out;
  for (const StepRun& step : record.steps) {
    py::dict named;
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
      named[py::str(output_name(graph, i))] = numpy_of(step.outputs[i].view());
    out.append(named);
  }
  return out;
}

py::dict dict_of(const RunRecord& record) {
  py::dict out;
  out["variant"] = record.variant;
  out["graph"] = PyGraph{record.versions.back().graph.context_ptr(), record.versions.back().graph};
  out["passes"] = rows_of(pass_table(record.rewrite));
  out["rules"] = rows_of(rule_table(record.rewrite));
  if (record.proof) {
    out["proofs"] = rows_of(run_proof_table(*record.proof));
    out["not_proved"] = rows_of(left_table(*record.proof));
  }
  out["pieces"] = rows_of(piece_table(*record.pieces));
  out["plan"] = plan_to_json(record.plan, *record.pieces);
  out["steps"] = rows_of(step_table(record));
  if (record.generated) out["generated"] = rows_of(generated_table(*record.generated));
  out["numbers"] = rows_of(number_table(record));
  out["outputs"] = outputs_of(record);
  py::dict kernels;
  for (const KernelSource& kernel : record.kernels) kernels[py::str(kernel.name)] = kernel.text;
  out["kernels"] = kernels;
  py::dict counters;
  for (const auto& [name, count] : record.device) counters[py::str(name)] = count;
  out["counters"] = counters;
  return out;
}

/// The graph, rules and options of a call; `symbols` and `params` are written as on the command
/// line.
struct Named {
  const ContextPtr& context;
  GraphSource graph;
  RuleSource rules;
  py::object log;
};

/// Returns a log that stores the lines of the stages in a list and passes them to the caller.
Log log_into(std::vector<std::string>& lines, const Named& named) {
  const Log caller = log_to(named.log, named.context);
  Log log;
  log.say = [&lines, caller](const std::string& line) {
    lines.push_back(line);
    caller.say(line);
  };
  log.warn = [&lines, caller, context = named.context](const Diagnostics& diagnostics) {
    if (!diagnostics.empty()) lines.push_back(render(diagnostics, context->sources));
    caller.warn(diagnostics);
  };
  return log;
}

/// The common options of running and measuring.
void take_execution(Given& given, const Named& named, ExecutionRequest& request) {
  request.graph = named.graph;
  request.rules = named.rules;
  given.take("backend", request.backend);
  given.take("driver", request.engine.driver);
  if (request.engine.driver != "cuda" && request.engine.driver != "host")
    throw mistake("PW1405", "there is no driver `" + request.engine.driver + "`",
                  "the drivers are cuda and host");
  given.take("cached_tokens", request.engine.cached_tokens);
  given.take("programmatic_edges", request.engine.programmatic_edges);
  given.take("share_executables", request.engine.share_executables);
  given.take("stream_weights", request.engine.stream_weights);
  given.take("strict", request.engine.strict);
  given.take("fuse", request.engine.fuse);
  given.take("seed", request.engine.seed);
  given.take("schedules", request.engine.schedules);
  given.take("tokens", request.tokens);
  given.take("steps", request.steps);
  given.take("weights", request.weights);
  given.take("map", request.map);
  given.take("plan", request.planned);
  take_plan(given, request.plan);
  std::map<std::string, py::object> backends;
  given.take("backends", backends);
  for (const auto& [name, compile] : backends)
    request.engines.push_back(engine_of_python(name, compile));
  py::dict arrays;
  given.take("given", arrays);
  if (arrays.empty()) return;
  const Graph graph = need(named.context, load_graph(named.context, request.graph)).graph;
  for (auto& [name, tensor] : inputs_of(named.context, graph, arrays))
    request.given.emplace(name, std::move(tensor));
}

/// The options of steps that choose their tokens.
void take_generation(Given& given, ExecutionRequest& request) {
  given.take("generate_steps", request.generate);
  given.take("end_tokens", request.ends);
  given.take("steps_in_launch", request.engine.steps_in_launch);
}

void take_run(Given& given, RunRequest& request) {
  given.take("check", request.check);
  given.take("prove", request.prove);
  given.take("pad", request.pad);
  given.take("native", request.native);
  given.take("ranks", request.ranks);
  std::vector<std::string> replicated;
  given.take("replicated", replicated);
  for (const std::string& name : replicated) request.replication.names.insert(name);
  request.graph.replicated = std::move(replicated);
  request.replication.all = request.replication.names.erase("all") > 0;
}

/// Runs the graphs that the pipeline makes; `described` converts their records to Python.
template <class Described>
py::dict run_and_describe(const Named& named, const RunRequest& request,
                          const Described& described) {
  std::vector<std::string> lines;
  py::list graphs;
  const RunDone done = [&](const RunRecord& record, const LoadedRules& rules) -> Status {
    graphs.append(PW_TRY(described(record, rules)));
    return {};
  };
  const RunSummary summary =
      need(named.context, run_model(named.context, request, log_into(lines, named), done));
  py::dict out;
  out["steps"] = summary.steps;
  out["failed"] = summary.failed;
  out["graphs"] = graphs;
  out["log"] = lines;
  return out;
}

py::dict run_call(const Named& named, const py::dict& options) {
  RunRequest request;
  Given given("run_model", options);
  take_execution(given, named, request);
  take_run(given, request);
  std::map<std::string, py::object> functions;
  given.take("functions", functions);
  const PythonFunctions scope(named.context, functions);
  const auto hook = hook_of_python(given.object("hook"));
  request.hook = hook.get();
  take_generation(given, request);
  given.take("execute", request.execute);
  given.take("save", request.save);
  given.take("expect", request.expect);
  given.take("rtol", request.tolerance.relative);
  given.take("atol", request.tolerance.absolute);
  given.end();
  request.keep = request.execute;
  try {
    return run_and_describe(named, request, [](const RunRecord& record, const LoadedRules&) {
      return Result<py::dict>(dict_of(record));
    });
  } catch (const PiecewiseError&) {
    scope.rethrow();
    throw;
  }
}

py::dict report_call(const Named& named, bool page, const py::dict& options) {
  RunRequest request;
  request.execute = false;
  Given given("report", options);
  take_execution(given, named, request);
  take_run(given, request);
  given.take("run", request.execute);
  given.take("times", request.times);
  given.take("command", request.command);
  given.end();
  request.check = request.execute;
  request.hash_files = true;
  const Log log = log_to(named.log, named.context);
  return run_and_describe(
      named, request, [&](const RunRecord& record, const LoadedRules& rules) -> Result<py::dict> {
        py::dict out;
        out["variant"] = record.variant;
        out["text"] = PW_TRY(page ? page_of(record, rules, log) : text_of(record, rules.set));
        return out;
      });
}

std::vector<std::string> artifact_call(const Named& named, const py::dict& options) {
  RunRequest request;
  std::string output;
  Given given("compile_model", options);
  take_execution(given, named, request);
  given.take("output", output);
  given.end();
  std::vector<std::string> lines;
  need(named.context, write_artifact(named.context, request, output, log_into(lines, named)));
  return lines;
}

py::dict bench_call(const Named& named, const py::dict& options) {
  BenchRequest request;
  Given given("bench", options);
  take_execution(given, named, request);
  take_generation(given, request);
  given.take("histogram", request.histogram);
  given.take("repeats", request.repeats);
  given.end();
  std::vector<std::string> lines;
  const BenchReport report =
      need(named.context, bench_model(named.context, request, log_into(lines, named)));
  py::dict out;
  out["steps"] = rows_of(report.step_table());
  if (report.generation) out["generation"] = rows_of(report.generation_table());
  out["pieces"] = rows_of(report.piece_table());
  out["totals"] = rows_of(report.totals());
  out["log"] = lines;
  return out;
}

using Texts = std::vector<std::string>;

using AnyGraph = std::variant<std::string, PyGraph>;
using AnyRules = std::variant<Texts, PyRules>;

GraphSource graph_source(const ContextPtr& context, const AnyGraph& graph, const Texts& symbols) {
  GraphSource out;
  out.symbols = symbols;
  if (const auto* path = std::get_if<std::string>(&graph)) {
    out.path = *path;
    return out;
  }
  const auto& loaded = std::get<PyGraph>(graph);
  if (loaded.context != context)
    throw mistake("PW1412", "the graph and the rules belong to different sessions");
  out.loaded = std::make_shared<const Graph>(loaded.graph);
  return out;
}

RuleSource rule_source(const ContextPtr& context, const AnyRules& rules,
                       const std::string& pipeline, const Texts& params) {
  RuleSource out{{}, pipeline, params};
  if (const auto* files = std::get_if<Texts>(&rules)) {
    out.rules = *files;
    return out;
  }
  const auto& loaded = std::get<PyRules>(rules);
  if (loaded.context != context)
    throw mistake("PW1412", "the graph and the rules belong to different sessions");
  out.loaded = loaded.set;
  return out;
}

}  // namespace

void add_pipeline(py::module_& module) {
  const auto def = [&](const char* name, auto call, const char* doc) {
    module.def(
        name,
        [call](const ContextPtr& context, const AnyGraph& graph, const Texts& symbols,
               const AnyRules& rules, const std::string& pipeline, const Texts& params,
               const py::dict& options, const py::object& log) {
          return call(Named{context, graph_source(context, graph, symbols),
                            rule_source(context, rules, pipeline, params), log},
                      options);
        },
        py::arg("session"), py::arg("graph"), py::arg("symbols"), py::arg("rules"),
        py::arg("pipeline"), py::arg("params"), py::arg("options"), py::arg("log"), doc);
  };
  def("run_request", &run_call, "see piecewise.run_model");
  def("artifact_request", &artifact_call, "see piecewise.compile_model");
  def("bench_request", &bench_call, "see piecewise.bench");
  def(
      "report_text", [](const Named& n, const py::dict& o) { return report_call(n, false, o); },
      "see piecewise.report");
  def(
      "report_page", [](const Named& n, const py::dict& o) { return report_call(n, true, o); },
      "see piecewise.report");
  module.def(
      "engines",
      [] {
        py::list out;
        for (const StepEngineKind& engine : builtin_engines()) {
          py::dict row;
          row["name"] = engine.name;
          row["what"] = engine.what;
          row["ranks"] = engine.can.ranks;
          row["strict"] = engine.can.strict;
          row["fuse"] = engine.can.fuse;
          row["capture"] = engine.can.capture;
          out.append(row);
        }
        return out;
      },
      "The backends, a dict each: name, what, and whether it can do ranks, strict, fuse and "
      "capture.");
}

}  // namespace pw::python
