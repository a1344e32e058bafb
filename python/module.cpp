// The extension module _piecewise: graphs, rules, pipelines, pictures. It is thin: every function
// is one call of the library.
#include "python/module.hpp"

#include <optional>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "base/version.hpp"
#include "graph/text/graph_json.hpp"
#include "graph/text/text.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/load.hpp"
#include "python/engines.hpp"
#include "rewriter/rewriter.hpp"
#include "splitter/plan.hpp"
#include "viz/viz.hpp"

namespace py = pybind11;
using namespace pw;
using namespace pw::python;

namespace {

/// A run: the graph before and after each pass, and the counts.
struct PyRun {
  ContextPtr context;
  std::shared_ptr<const RuleSet> rules;
  std::vector<Version> versions;
  RewriteReport report;
  std::string pipeline;
  Env params;
};

/// `symbols` are written as on the command line: n=arg0_1.0,arg6_1.0.
PyGraph load_text(const ContextPtr& context, const std::string& text, const std::string& name,
                  const std::vector<std::string>& symbols) {
  GraphSource source;
  source.path = name;
  source.symbols = symbols;
  return {context, need(context, read_graph(context, text, source)).graph};
}

py::dict pass_row(const PassStats& pass) {
  py::dict row;
  row["pass"] = pass.pass;
  row["rewrites"] = pass.rewrites;
  row["nodes_before"] = pass.nodes_before;
  row["nodes_after"] = pass.nodes_after;
  row["skipped"] = pass.skipped;
  return row;
}

/// Returns the proofs of its rewrites.
py::dict proofs_of(const PyRun& run, const py::object& log) {
  const Graph& before = run.versions.front().graph;
  const SymbolFact tokens = declared_tokens(before);
  const Log logger = log_to(log, run.context);
  const LoadedRules rules{*run.rules, run.params};
  RunProver prover(rules, run.pipeline, {}, logger);
  const RunProof proof = prover.prove(before, run.report, {tokens.min, tokens.max});
  py::dict out;
  out["proofs"] = from_json(run_proof_table(proof).print("json"));
  out["not_proved"] = from_json(left_table(proof).print("json"));
  out["summary"] = proof.print();
  return out;
}

PyRun run(const PyGraph& input, const PyRules& rules, const std::string& pipeline,
          const std::map<std::string, std::string>& params) {
  if (input.context != rules.context)
    throw mistake("PW1412", "the graph and the rules belong to different sessions");
  Env env = need(rules.context, bind_params(*rules.set, {params.begin(), params.end()}));
  PyRun out{rules.context, rules.set, {}, {}, pipeline, env};
  Graph graph = input.graph;
  RewriteOptions options;
  options.after_pass = [&](const std::string& pass, const Graph& g) {
    out.versions.push_back({pass, g});
  };
  out.report = need(rules.context, run_pipeline(graph, *rules.set, pipeline, env, options));
  return out;
}

VizInput viz_input(const PyRun& run) {
  VizInput input;
  input.versions = run.versions;
  input.journal = &run.report.journal;
  input.rules = run.rules.get();
  return input;
}

/// Marks the changes of `version`; without it, those of all passes.
std::string draw(const ContextPtr& context, VizInput input, const std::string& format,
                 const std::string& collapse, bool split_too, const std::string& view = "auto",
                 std::optional<std::size_t> version = std::nullopt) {
  std::optional<Collapse> how = collapse_named(collapse);
  if (!how) throw mistake("PW1413", "collapse must be auto, none, pieces or layers");
  std::optional<View> shown = view_named(view);
  if (!shown)
    throw mistake("PW1413", fmt::format("view must be one of {}", fmt::join(view_names(), ", ")));
  VizOptions options;
  options.collapse = *how;
  options.view = *shown;
  options.most_boxes = format == "svg" ? 300 : 600;
  if (input.versions.size() > 1) options.against = 0;
  if (version && *version > 0) options.against = *version - 1;
  if (version) {
    options.version = version;
    split_too = split_too && *version + 1 == input.versions.size();
  }
  std::optional<StitchedGraph> pieces;
  if (split_too) {
    std::vector<OpId> ops = need(context, splitting_ops(context, input.rules, {}, {}));
    pieces = need(context, split(input.versions.back().graph, ops));
    input.pieces = &*pieces;
  }
  return need(context, render_as("picture." + format, input, options));
}

/// Returns the version after a pass, given by name (the first with that name) or by index.
std::size_t version_of(const PyRun& run, const std::variant<std::size_t, std::string>& pass) {
  if (const auto* number = std::get_if<std::size_t>(&pass)) {
    if (*number < run.versions.size()) return *number;
    throw mistake("PW1413", "the versions are 0 to " + std::to_string(run.versions.size() - 1));
  }
  const std::string& name = std::get<std::string>(pass);
  for (std::size_t i = 0; i < run.versions.size(); ++i)
    if (run.versions[i].pass == name) return i;
  throw mistake("PW1413", "the run has no pass `" + name + "`");
}

void add_graph_class(py::module_& m) {
  py::class_<PyGraph> graph(m, "Graph", py::dynamic_attr(),
                            "An immutable graph and the session that it belongs to.");
  add_run(graph);
  graph
      .def_property_readonly(
          "name", [](const PyGraph& g) { return g.graph.name; }, "the graph's name")
      .def_property_readonly(
          "session", [](const PyGraph& g) { return g.context; },
          "the session, which owns its names, types and ops")
      .def("__len__", [](const PyGraph& g) { return g.graph.node_count(); })
      .def(
          "text", [](const PyGraph& g) { return print_pwg(g.graph); }, "the graph as .pwg")
      .def(
          "json", [](const PyGraph& g) { return graph_to_json(g.graph); },
          "the graph as graph.json")
      .def(
          "ops",
          [](const PyGraph& g) {
            std::map<std::string, int> counts;
            for (NodeId n = g.graph.first(); n.valid(); n = g.graph.next(n))
              ++counts[g.graph.op_of(n).name];
            return counts;
          },
          "the number of nodes of each op")
      .def(
          "draw",
          [](const PyGraph& g, const std::string& format, const std::string& collapse,
             bool split_too) {
            VizInput input;
            input.versions.push_back({"input", g.graph});
            py::bytes out(draw(g.context, std::move(input), format, collapse, split_too));
            return out;
          },
          py::arg("format") = "svg", py::arg("collapse") = "auto", py::arg("split") = true,
          "Draws a picture: svg, png, pdf, dot, html or txt.");
}

void add_rules_class(py::module_& m) {
  py::class_<PyRules>(m, "Rules", "Rules and the session that they belong to.")
      .def_property_readonly(
          "session", [](const PyRules& r) { return r.context; },
          "the session, which owns their names, types and ops")
      .def_property_readonly(
          "names",
          [](const PyRules& r) {
            std::vector<std::string> names;
            for (const Rule& rule : r.set->rules) names.push_back(rule.name);
            return names;
          },
          "the rules' full names")
      .def_property_readonly(
          "pipelines",
          [](const PyRules& r) {
            std::vector<std::string> names;
            for (const auto& [name, strategy] : r.set->pipelines) names.push_back(name);
            return names;
          },
          "names of the pipelines")
      .def_property_readonly(
          "warnings", [](const PyRules& r) { return render(r.set->warnings, r.context->sources); },
          "the warnings from loading them, as text");
}

void add_run_class(py::module_& m) {
  py::class_<PyRun>(
      m, "Run", "A completed run of a pipeline: the graph before and after each pass, and counts.")
      .def_property_readonly(
          "graph", [](const PyRun& r) { return PyGraph{r.context, r.versions.back().graph}; },
          "the rewritten graph")
      .def_property_readonly(
          "passes",
          [](const PyRun& r) {
            py::list rows;
            for (const PassStats& pass : r.report.passes) rows.append(pass_row(pass));
            return rows;
          },
          "a dict for each pass: pass, rewrites, nodes_before, nodes_after, skipped")
      .def_property_readonly(
          "versions",
          [](const PyRun& r) {
            std::vector<std::string> names;
            for (const Version& v : r.versions) names.push_back(v.pass);
            return names;
          },
          "the input, and each pass that was not skipped")
      .def(
          "count",
          [](const PyRun& r, const std::string& rule) {
            need(r.context, check_rule_name(*r.rules, rule));
            return r.report.journal.count(*r.rules, rule);
          },
          py::arg("rule"), "Returns the number of rewrites by a rule, family or group.")
      .def("prove", &proofs_of, py::arg("log") = py::none(),
           "Proves each rewrite. Returns a dict: proofs, a row for each rule that fired; "
           "not_proved, a row for each rewrite without a proof; and a summary.")
      .def(
          "before", [](const PyRun& r) { return PyGraph{r.context, r.versions.front().graph}; },
          "Returns the graph before any rewriting.")
      .def(
          "after",
          [](const PyRun& r, const std::variant<std::size_t, std::string>& pass) {
            return PyGraph{r.context, r.versions[version_of(r, pass)].graph};
          },
          py::arg("pass_"),
          "Returns the graph after a pass, by its name or its index among the versions.")
      .def(
          "draw",
          [](const PyRun& r, const std::string& format, const std::string& collapse, bool split_too,
             const std::optional<std::variant<std::size_t, std::string>>& pass,
             const std::string& view) {
            std::optional<std::size_t> version;
            if (pass) version = version_of(r, *pass);
            return py::bytes(
                draw(r.context, viz_input(r), format, collapse, split_too, view, version));
          },
          py::arg("format") = "svg", py::arg("collapse") = "auto", py::arg("split") = true,
          py::arg("after") = py::none(), py::arg("view") = "auto",
          "Draws the changes of all passes, or of one, by its name or its index among the "
          "versions; view=\"changes\" crops the picture to the changes.");
}

/// Adds what makes graphs and rules, and runs the rules.
void add_session_methods(py::class_<Context, ContextPtr>& session) {
  session.def(py::init([] { return std::make_shared<Context>(); }))
      .def("graph_text", &load_text, py::arg("text"), py::arg("name") = "text",
           py::arg("symbols") = std::vector<std::string>{}, "see Session.loads")
      .def(
          "rules",
          [](const ContextPtr& c, const std::vector<std::string>& files) {
            return PyRules{c, std::make_shared<const RuleSet>(need(c, load_rules(c, files)))};
          },
          py::arg("files"), "Loads rule files, or library rules by name such as llm.")
      .def(
          "rules_text",
          [](const ContextPtr& c, const std::string& text, const std::string& name) {
            return PyRules{
                c, std::make_shared<const RuleSet>(need(c, load_rule_texts(c, {{name, text}})))};
          },
          py::arg("text"), py::arg("name") = "notebook.pwr",
          "Loads rules from a text; messages call it `name`.")
      .def(
          "run",
          [](const ContextPtr&, const PyGraph& g, const PyRules& rules, const std::string& pipeline,
             const std::map<std::string, std::string>& params) {
            return run(g, rules, pipeline, params);
          },
          py::arg("graph"), py::arg("rules"), py::arg("pipeline"),
          py::arg("params") = std::map<std::string, std::string>{}, "see piecewise.Session.run")
      .def(
          "explain",
          [](const ContextPtr& c, const PyGraph& g, const PyRules& rules, const std::string& rule) {
            Env params = need(c, bind_params(*rules.set, {}));
            need(c, check_rule_name(*rules.set, rule));
            const std::vector<RuleId> ids = rules.set->resolve(rule);
            std::string out;
            for (RuleId id : ids) {
              std::optional<Rejection> why = explain(g.graph, *rules.set, id, params);
              out += rules.set->rules[id].name + ": " +
                     (why ? why->code + " " + why->message
                          : "it matches, or no node has an op of its pattern") +
                     "\n";
            }
            return out;
          },
          py::arg("graph"), py::arg("rules"), py::arg("rule"),
          "Explains why the rule did not match, in one line for each variant.");
}

}  // namespace

PYBIND11_MODULE(_piecewise, m) {
  m.doc() = "Rewrites tensor dataflow graphs with rules, and shows the changes.";
  add_error(m);
  add_graph_class(m);
  add_rules_class(m);
  add_run_class(m);

  py::class_<Context, ContextPtr> session(m, "Session",
                                          "Names, types and ops that graphs and rules share.");
  add_engines(m);
  add_pipeline(m);
  add_commands(m);
  add_planning(m);
  add_fx_graph(m);
  add_seen_import(m);
  add_compiled(m);
  add_device(m);
  add_lens(m);
  add_same_tensors(m);
  add_kept(session);
  add_changes(m);
  m.attr("__version__") = version();
  add_session_methods(session);
}
