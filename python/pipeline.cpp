// Exports add_pipeline: the main job, and splits and plans, as the command line does them.
#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "base/try.hpp"
#include "pipeline/run.hpp"
#include "python/module.hpp"
#include "verify/numeric.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

/// Rows as `--format json` prints them.
py::object rows_of(const Table& table) {
  return py::module_::import("json").attr("loads")(table.print("json"));
}

/// Lines that the stages say.
Log log_into(std::vector<std::string>& lines, const ContextPtr& context) {
  Log log;
  log.say = [&lines](const std::string& line) { lines.push_back(line); };
  log.warn = [&lines, context](const Diagnostics& diagnostics) {
    if (!diagnostics.empty()) lines.push_back(render(diagnostics, context->sources));
  };
  return log;
}

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
  out["pieces"] = rows_of(piece_table(*record.pieces));
  out["plan"] = plan_to_json(record.plan, *record.pieces);
  out["steps"] = rows_of(step_table(record));
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

template <class T>
void take(const py::dict& given, const char* name, T& into) {
  if (given.contains(name)) into = given[name].cast<T>();
}

RunRequest request_of(const py::dict& given) {
  RunRequest request;
  take(given, "path", request.graph.path);
  take(given, "symbols", request.graph.symbols);
  take(given, "rules", request.rules.rules);
  take(given, "pipeline", request.rules.pipeline);
  take(given, "params", request.rules.definitions);
  take(given, "backend", request.backend);
  take(given, "driver", request.engine.driver);
  take(given, "strict", request.engine.strict);
  take(given, "fuse", request.engine.fuse);
  take(given, "seed", request.engine.seed);
  take(given, "schedules", request.engine.schedules);
  take(given, "tokens", request.tokens);
  take(given, "steps", request.steps);
  take(given, "weights", request.weights);
  take(given, "map", request.map);
  take(given, "plan", request.planned);
  take(given, "split_at", request.plan.at);
  take(given, "fold", request.plan.fold);
  take(given, "max_tokens", request.plan.max_tokens);
  take(given, "ranges", request.plan.range_ends);
  take(given, "sizes", request.plan.capture_sizes);
  take(given, "mode", request.plan.mode);
  take(given, "execute", request.execute);
  take(given, "check", request.check);
  take(given, "pad", request.pad);
  take(given, "ranks", request.ranks);
  request.keep = request.execute;
  return request;
}

py::dict run_request(const ContextPtr& context, const py::dict& given) {
  std::vector<std::string> lines;
  py::list graphs;
  const RunDone done = [&](const RunRecord& record, const LoadedRules&) -> Result<std::monostate> {
    graphs.append(dict_of(record));
    return std::monostate{};
  };
  const RunSummary summary =
      need(context, run_model(context, request_of(given), log_into(lines, context), done));
  py::dict out;
  out["steps"] = summary.steps;
  out["failed"] = summary.failed;
  out["graphs"] = graphs;
  out["log"] = lines;
  return out;
}

}  // namespace

void add_pipeline(py::module_& module) {
  module.def("run_request", &run_request, py::arg("session"), py::arg("request"),
             "see run_model()");
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
      "the backends, with what each can do");
}

}  // namespace pw::python
