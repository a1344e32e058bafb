#include <fmt/ranges.h>
#include <pybind11/stl.h>

#include "base/io/file.hpp"
#include "pipeline/capture_sizes.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/report/dispatch_table.hpp"
#include "pipeline/report/pictures.hpp"
#include "pipeline/report/plan_tables.hpp"
#include "pipeline/run/compile.hpp"
#include "pipeline/run/dump.hpp"
#include "python/module.hpp"
#include "python/options.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Texts = std::vector<std::string>;

/// A graph, its rules and pipeline, and the log of the stages.
struct Job {
  const PyGraph& graph;
  LoadedRules rules;
  std::string pipeline;
  Log log;
};

Job job_of(const PyGraph& graph, const PyRules& rules, const Texts& params,
           const std::string& pipeline, const py::object& log) {
  Log logger = log_to(log, graph.context);
  LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  return {graph, std::move(loaded), pipeline, std::move(logger)};
}

template <class T>
T done(const Job& job, Result<T> result) {
  return need(job.graph.context, std::move(result));
}

CutGraph cut_of(const Job& job, const PlanRequest& request) {
  return done(job, rewrite_and_cut(job.graph.graph, job.rules, job.pipeline, request, job.log));
}

py::object json_rows(const Table& table) { return from_json(table.print("json")); }

py::object split_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                      const std::string& pipeline, const std::string& output,
                      const py::dict& options, const py::object& log) {
  PlanRequest request;
  Given given("split", options);
  take_plan(given, request);
  given.end();
  const Job job = job_of(graph, rules, params, pipeline, log);
  const CutGraph cut = cut_of(job, request);
  if (!output.empty()) done(job, write_pieces(cut.pieces, cut.at_load, output, output));
  job.log.say(split_summary(cut.pieces));
  return json_rows(piece_table(cut.pieces));
}

/// Questions about a plan in addition to its text.
struct PlanQuestions {
  Texts steps;  ///< see dispatch_table
  std::int64_t active_loras = 0;
};

py::dict plan_variant_call(const Job& job, const GraphVariant& variant, const PlanRequest& request,
                           const PlanQuestions& questions, Counting& counting) {
  const StitchedGraph pieces = done(job, cut_graph(variant.result.graph, job.rules, request));
  if (variant.at_load) job.log.say(at_load_summary(*variant.at_load));
  const Plan plan = done(job, plan_variant(pieces, variant, job.rules, request, job.log));
  counting.add(pieces, plan);
  py::dict out;
  out["variant"] = variant.name;
  out["plan"] = plan_to_json(plan, pieces);
  out["memory"] = json_rows(memory_table(plan));
  out["dispatch"] =
      json_rows(done(job, dispatch_table(plan, questions.steps, questions.active_loras)));
  out["summary"] = split_summary(pieces) + "; " + plan_summary(plan);
  return out;
}

py::dict plan_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                   const std::string& pipeline, const py::dict& options, const py::object& log) {
  PlanRequest request;
  PlanQuestions questions;
  Given given("plan", options);
  take_plan(given, request);
  given.take("steps", questions.steps);
  given.take("active_loras", questions.active_loras);
  given.end();
  const Job job = job_of(graph, rules, params, pipeline, log);
  const auto variants = done(job, make_variants(graph.graph, job.rules, pipeline, job.log));
  Counting counting;
  py::list graphs;
  for (const GraphVariant& variant : variants)
    graphs.append(plan_variant_call(job, variant, request, questions, counting));
  py::dict out;
  out["graphs"] = graphs;
  out["counters"] = json_rows(counter_table(counting.counters()));
  return out;
}

py::dict sizes_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                    const std::string& pipeline, const Texts& histograms, const std::string& output,
                    const py::dict& options, const py::object& log) {
  SizesRequest request;
  Given given("sizes", options);
  take_plan(given, request.plan);
  given.take("times", request.times);
  given.take("graphs", request.graphs);
  given.take("graph_seconds", request.graph_seconds);
  given.end();
  const Job job = job_of(graph, rules, params, pipeline, log);
  const SizedGraph sized = done(job, size_graph(cut_of(job, request.plan), request, job.log));
  std::vector<SizeChoice> choices;
  std::vector<FrontierCurve> curves;
  py::dict chosen;
  for (const std::string& traffic : histograms) {
    choices.push_back(done(job, choose_sizes(sized, traffic, request)));
    curves.push_back(choices.back().curve());
    chosen[py::str(traffic)] = choices.back().chosen();
  }
  if (!output.empty()) done(job, write_file(output, frontier_svg(curves)));
  py::dict out;
  out["rows"] = json_rows(size_table(choices, true));
  out["chosen"] = chosen;
  return out;
}

py::object compile_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                        const std::string& pipeline, const std::string& output,
                        const py::dict& options, const py::object& log) {
  CompileRequest request;
  request.output = output;
  std::string dump;
  Given given("compile", options);
  take_plan(given, request.plan);
  given.take("archs", request.archs);
  given.take("fuse", request.fuse);
  given.take("strict", request.strict);
  given.take("sources_only", request.sources_only);
  given.take("schedules", request.schedules);
  given.take("tokens", request.tokens);
  given.take("dump", dump);
  given.end();
  const Job job = job_of(graph, rules, params, pipeline, log);
  auto variants =
      done(job, make_variants(graph.graph, job.rules, pipeline, job.log, !dump.empty()));
  done(job, need_one(variants, "compile each graph that opt() returns separately"));
  const CompiledGraph compiled =
      done(job, compile_graph(variants.front(), job.rules, request, job.log));
  if (!dump.empty()) done(job, write_dump(compiled.record, job.rules.set, dump, job.log));
  return from_json(cuda::to_json(compiled.report));
}

py::object tune_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                     const std::string& pipeline, const py::dict& options, const py::object& log) {
  TuneRequest request;
  PlanRequest plan;
  Given given("tune", options);
  take_plan(given, plan);
  given.take("tokens", request.tokens);
  given.take("archs", request.archs);
  given.take("strict", request.strict);
  given.take("measure", request.measure);
  given.take("output", request.output);
  given.end();
  Tuner tuner = need(graph.context, Tuner::open(request));
  const Job job = job_of(graph, rules, params, pipeline, log);
  const TunedGraph tuned = done(job, tuner.tune(cut_of(job, plan), job.log));
  if (!request.output.empty()) done(job, write_file(request.output, tuned.schedules.to_json()));
  return json_rows(schedule_table(tuned));
}

/// Returns the outline as text, or writes the picture to a file if there is an output.
py::object draw_files(const ContextPtr& context, const Texts& files, const Texts& rules,
                      const std::string& pipeline, const Texts& params, const std::string& output,
                      const py::dict& options, const py::object& log) {
  PictureRequest request;
  request.files = files;
  request.rules = {rules, pipeline, params};
  request.output = output;
  std::string collapse = "auto", view = "auto";
  Given given("draw", options);
  take_plan(given, request.plan);
  given.take("symbols", request.graph.symbols);
  given.take("after", request.pass);
  given.take("overlay", request.overlay);
  given.take("split", request.split);
  given.take("times", request.times);
  given.take("most_boxes", request.viz.most_boxes);
  given.take("collapse", collapse);
  given.take("view", view);
  given.end();
  const auto named_collapse = collapse_named(collapse);
  const auto named_view = view_named(view);
  if (!named_collapse) throw mistake("PW1413", "collapse must be auto, none, pieces or layers");
  if (!named_view)
    throw mistake("PW1413", fmt::format("there is no view `{}`; the views are {}", view,
                                        fmt::join(view_names(), ", ")));
  request.viz.collapse = *named_collapse;
  request.viz.view = *named_view;
  const std::string picture = need(context, draw_picture(context, request, log_to(log, context)));
  if (output.empty()) return py::str(picture);
  need(context, write_file(output, picture));
  return py::none();
}

}  // namespace

void add_planning(py::module_& module) {
  const auto def = [&](const char* name, auto function, auto... arguments) {
    module.def(name, function, py::arg("graph"), py::arg("rules"), py::arg("params"),
               py::arg("pipeline"), arguments..., py::arg("options"), py::arg("log"),
               (std::string("see piecewise.") + name).c_str());
  };
  def("split", &split_call, py::arg("output"));
  def("plan", &plan_call);
  def("sizes", &sizes_call, py::arg("histograms"), py::arg("output"));
  def("compile", &compile_call, py::arg("output"));
  def("tune", &tune_call);
  module.def("draw_files", &draw_files, py::arg("session"), py::arg("files"), py::arg("rules"),
             py::arg("pipeline"), py::arg("params"), py::arg("output"), py::arg("options"),
             py::arg("log"), "see piecewise.draw");
  module.def(
      "compare_plans",
      [](const std::string& before, const std::string& after) {
        return need(std::make_shared<Context>(), compare_plans(before, after));
      },
      py::arg("before"), py::arg("after"),
      "Returns the differences between two plan.json files, a line each; an empty list if they are "
      "equal.");
}

}  // namespace pw::python
