// The extension module _piecewise: graphs, rules, pipelines, pictures. Thin: every function is one
// call of the library.
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

/// `symbols` as the command line writes them: n=arg0_1.0,arg6_1.0.
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

/// What is proved of its rewrites.
py::dict proofs_of(const PyRun& run, const py::object& log) {
  const Graph& before = run.versions.front().graph;
  const SymbolFact tokens = declared_tokens(before);
  const Log told = log_to(log, run.context);
  const LoadedRules rules{*run.rules, run.params};
  RunProver prover(rules, run.pipeline, {}, told);
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
    throw mistake("PW1412", "the graph and the rules are of different sessions");
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

/// `version`: what it changed is marked; without one, what all passes changed.
std::string draw(const ContextPtr& context, VizInput input, const std::string& format,
                 const std::string& collapse, bool split_too, const std::string& view = "auto",
                 std::optional<std::size_t> version = std::nullopt) {
  std::optional<Collapse> how = collapse_named(collapse);
  if (!how) throw mistake("PW1413", "collapse is auto, none, pieces or layers");
  std::optional<View> shown = view_named(view);
  if (!shown)
    throw mistake("PW1413", fmt::format("view is one of {}", fmt::join(view_names(), ", ")));
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

/// The version after a pass: its name (the first of that name), or its place.
std::size_t version_of(const PyRun& run, const std::variant<std::size_t, std::string>& pass) {
  if (const auto* number = std::get_if<std::size_t>(&pass)) {
    if (*number < run.versions.size()) return *number;
    throw mistake("PW1413", "there are versions 0 to " + std::to_string(run.versions.size() - 1));
  }
  const std::string& name = std::get<std::string>(pass);
  for (std::size_t i = 0; i < run.versions.size(); ++i)
    if (run.versions[i].pass == name) return i;
  throw mistake("PW1413", "there was no pass `" + name + "`");
}

}  // namespace

PYBIND11_MODULE(_piecewise, m) {
  m.doc() = "Rewrites tensor dataflow graphs with rules, and shows what happened.";
  add_error(m);

  py::class_<PyGraph> graph(m, "Graph", py::dynamic_attr(),
                            "An immutable graph and the session that it belongs to.");
  add_run(graph);
  graph
      .def_property_readonly(
          "name", [](const PyGraph& g) { return g.graph.name; }, "the graph's name")
      .def_property_readonly(
          "session", [](const PyGraph& g) { return g.context; },
          "what it shares names, types and ops with")
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
          "how often each op occurs")
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
          "a picture: svg, png, pdf, dot, html or txt");

  py::class_<PyRules>(m, "Rules", "Rules and the session that they belong to.")
      .def_property_readonly(
          "session", [](const PyRules& r) { return r.context; },
          "what they share names, types and ops with")
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
          "the warnings of loading them, as text");

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
          "a dict a pass: pass, rewrites, nodes_before, nodes_after, skipped")
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
          py::arg("rule"), "rewrites by a rule, family or group")
      .def("prove", &proofs_of, py::arg("log") = py::none(),
           "proves each rewrite: a dict of proofs, a row a rule that fired; not_proved, a row a "
           "rewrite that is left; and a summary")
      .def(
          "before", [](const PyRun& r) { return PyGraph{r.context, r.versions.front().graph}; },
          "the graph as it was")
      .def(
          "after",
          [](const PyRun& r, const std::variant<std::size_t, std::string>& pass) {
            return PyGraph{r.context, r.versions[version_of(r, pass)].graph};
          },
          py::arg("pass_"), "the graph after a pass, by its name or its place among the versions")
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
          "a picture of what all passes changed, or one, by its name or its place among the "
          "versions; view=\"changes\" crops it to what changed");

  py::class_<Context, ContextPtr> session(m, "Session",
                                          "Names, types and ops that graphs and rules share.");
  add_engines(m);
  add_pipeline(m);
  add_commands(m);
  add_planning(m);
  add_fx_graph(m);
  add_seen_import(m);
  add_compiled(m);
  add_kept(session);
  add_changes(m);
  m.attr("__version__") = version();

  session.def(py::init([] { return std::make_shared<Context>(); }))
      .def("graph_text", &load_text, py::arg("text"), py::arg("name") = "text",
           py::arg("symbols") = std::vector<std::string>{}, "see Session.loads")
      .def(
          "rules",
          [](const ContextPtr& c, const std::vector<std::string>& files) {
            return PyRules{c, std::make_shared<const RuleSet>(need(c, load_rules(c, files)))};
          },
          py::arg("files"), "rule files, or names of the library such as llm")
      .def(
          "rules_text",
          [](const ContextPtr& c, const std::string& text, const std::string& name) {
            return PyRules{
                c, std::make_shared<const RuleSet>(need(c, load_rule_texts(c, {{name, text}})))};
          },
          py::arg("text"), py::arg("name") = "notebook.pwr",
          "rules from a text; `name` stands in messages")
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
          "a line a variant of the rule: why it did not match");
}
