// Exports add_pipeline: the main job, and splits and plans, as the command line does them.
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
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

/// What a call gives by name. Each option that is asked for is one that it may give.
class Given {
 public:
  explicit Given(const py::dict& options) : options_(options) {}
  template <class T>
  void take(const char* name, T& into) {
    known_.insert(name);
    if (options_.contains(name)) into = options_[name].cast<T>();
  }
  /// Python's TypeError where there is another.
  void end() const {
    for (const auto& [key, value] : options_)
      if (const auto name = key.cast<std::string>(); !known_.contains(name))
        throw py::type_error(fmt::format("run_model() has no option '{}'; it has {}", name,
                                         fmt::join(known_, ", ")));
  }

 private:
  const py::dict& options_;
  std::set<std::string> known_;
};

RunRequest request_of(const GraphSource& graph, const RuleSource& rules, const py::dict& options) {
  RunRequest request;
  request.graph = graph;
  request.rules = rules;
  Given given(options);
  given.take("backend", request.backend);
  given.take("driver", request.engine.driver);
  given.take("strict", request.engine.strict);
  given.take("fuse", request.engine.fuse);
  given.take("seed", request.engine.seed);
  given.take("schedules", request.engine.schedules);
  given.take("tokens", request.tokens);
  given.take("steps", request.steps);
  given.take("weights", request.weights);
  given.take("map", request.map);
  given.take("plan", request.planned);
  given.take("split_at", request.plan.at);
  given.take("fold", request.plan.fold);
  given.take("max_tokens", request.plan.max_tokens);
  given.take("ranges", request.plan.range_ends);
  given.take("sizes", request.plan.capture_sizes);
  given.take("mode", request.plan.mode);
  given.take("execute", request.execute);
  given.take("check", request.check);
  given.take("pad", request.pad);
  given.take("ranks", request.ranks);
  given.end();
  request.keep = request.execute;
  return request;
}

/// `symbols` and `params` as the command line spells them.
py::dict run_request(const ContextPtr& context, const std::string& path,
                     const std::vector<std::string>& symbols, const std::vector<std::string>& rules,
                     const std::string& pipeline, const std::vector<std::string>& params,
                     const py::dict& options) {
  GraphSource graph;
  graph.path = path;
  graph.symbols = symbols;
  const RunRequest request = request_of(graph, {rules, pipeline, params}, options);
  std::vector<std::string> lines;
  py::list graphs;
  const RunDone done = [&](const RunRecord& record, const LoadedRules&) -> Result<std::monostate> {
    graphs.append(dict_of(record));
    return std::monostate{};
  };
  const RunSummary summary =
      need(context, run_model(context, request, log_into(lines, context), done));
  py::dict out;
  out["steps"] = summary.steps;
  out["failed"] = summary.failed;
  out["graphs"] = graphs;
  out["log"] = lines;
  return out;
}

}  // namespace

void add_pipeline(py::module_& module) {
  module.def("run_request", &run_request, "see run_model()");
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
