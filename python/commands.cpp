// Exposes the commands about rules, graphs, and the machine as data. Each function is one call into
// pipeline/, and its JSON is the command's.
#include <pybind11/stl.h>

#include "base/io/file.hpp"
#include "base/printable.hpp"
#include "failures/bisect.hpp"
#include "failures/reduce.hpp"
#include "pipeline/check/check.hpp"
#include "pipeline/check/fuzz_order.hpp"
#include "pipeline/check/test.hpp"
#include "pipeline/compare.hpp"
#include "pipeline/explain.hpp"
#include "pipeline/extract.hpp"
#include "pipeline/folder.hpp"
#include "pipeline/format.hpp"
#include "pipeline/generate.hpp"
#include "pipeline/judge/judge.hpp"
#include "pipeline/judge/prove_run.hpp"
#include "pipeline/optimize.hpp"
#include "pipeline/report/graph_stats.hpp"
#include "pipeline/report/op_list.hpp"
#include "pipeline/run/capabilities.hpp"
#include "pipeline/run/kept_kernels.hpp"
#include "proof/equal/equality.hpp"
#include "proof/equal/relation_text.hpp"
#include "python/module.hpp"
#include "python/options.hpp"
#include "studies/explore.hpp"
#include "studies/study_page.hpp"

namespace py = pybind11;

namespace pw::python {
namespace {

using Texts = std::vector<std::string>;

py::object rows(const Table& table) { return from_json(table.print("json")); }

py::object check(const ContextPtr& context, const Texts& files, bool analysis, bool proof,
                 const py::object& log) {
  const Result<CheckedRules> checked =
      check_rule_files(context, {files, analysis, analysis && proof}, log_to(log, context));
  if (!checked) return from_json(mistakes_to_json(checked.error(), context->sources));
  const Log logger = log_to(log, context);
  logger.warn(checked->warnings());
  for (const std::string& line : scope_lines(checked->report)) logger.say(line);
  return from_json(check_to_json(*checked));
}

py::object rule_order(const ContextPtr& context, const Texts& files, bool dot) {
  const CheckedRules checked = need(context, check_rule_files(context, {files, false}));
  if (dot) return py::str(order_dot(checked.rules));
  return rows(order_table(checked.rules));
}

py::object explain_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                        const std::string& rule, const std::string& pipeline,
                        const py::dict& options, const py::object& log) {
  ExplainRequest request;
  request.rule = rule;
  request.options.pipeline = pipeline;
  Given given("explain", options);
  given.take("before", request.options.before);
  given.take("at", request.options.at);
  given.take("most", request.options.most);
  given.take("tokens", request.options.tokens);
  given.take("pieces", request.pieces);
  given.end();
  const LoadedRules loaded = loaded_rules(rules, params, log_to(log, graph.context), &graph);
  const Explanation found = need(graph.context, explain_rule(graph.graph, loaded, request));
  return from_json(explanation_to_json(found, rule));
}

py::object match(const PyGraph& graph, const std::string& pattern, const Texts& files,
                 const Texts& params) {
  const LoadedPattern loaded =
      need(graph.context, load_pattern(graph.context, pattern, {files, "", params}));
  const PatternMatches found = match_pattern(graph.graph, loaded);
  return rows(match_table(found, found.matches.size()));
}

py::list verify_call(const PyRules& rules, const Texts& params, const Texts& only,
                     const std::vector<std::int64_t>& ranks, const std::string& graph,
                     const py::object& log) {
  const Log logger = log_to(log, rules.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, nullptr, true);
  JudgeRequest request;
  request.ranks = ranks;
  py::list out;
  const auto add = [&](const RuleJudgement& judgement) {
    out.append(from_json(judgement_to_json(judgement)));
  };
  need(rules.context, judge_rules(loaded, only, request, logger, add));
  for (const RuleJudgement& trait :
       need(rules.context, judge_traits(loaded.set, graph, request, only.empty())))
    add(trait);
  return out;
}

py::list prove_call(const PyRules& rules, const Texts& params, const Texts& only,
                    const py::object& log) {
  const Log logger = log_to(log, rules.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, nullptr, true);
  py::list out;
  need(rules.context, judge_rules(loaded, only, {}, logger, [&](const RuleJudgement& judgement) {
         out.append(from_json(judgement_to_json(judgement)));
       }));
  return out;
}

py::object equal_call(const PyGraph& single, const std::vector<const PyGraph*>& ranks,
                      const std::string& relation) {
  std::vector<const Graph*> graphs;
  for (const PyGraph* rank : ranks) graphs.push_back(&rank->graph);
  constexpr const char* kPlace = "relation";
  const proof::Relation related = need(single.context, parse_relation(relation, kPlace));
  return from_json(
      equality_answer(need(single.context, equal_graphs(single.graph, graphs, related, kPlace)))
          .print("json"));
}

/// Tests all files, then raises the errors of those that cannot be loaded.
py::object test(const TestRequest& request, const std::string& junit_path, const py::object& log) {
  const ContextPtr context = std::make_shared<Context>();  // it has no location
  std::vector<ErrorItem> mistakes;
  const UnloadedDone unloaded = [&](const Diagnostics& diagnostics, const ContextPtr& of) {
    const PiecewiseError error(diagnostics, of->sources);
    mistakes.insert(mistakes.end(), error.items().begin(), error.items().end());
  };
  const TestOutcome outcome =
      need(context, run_test_files(request, log_to(log, context), unloaded));
  if (!junit_path.empty())
    need(context, write_file(junit_path, junit(outcome.report.tests, outcome.unloaded)));
  std::string text;
  for (const UnloadedFile& file : outcome.unloaded) text += file.report;
  if (!outcome.unloaded.empty()) throw PiecewiseError(text, std::move(mistakes));
  return rows(test_table(outcome.report));
}

/// Returns the files whose format changed.
Texts format_files(const Texts& files, bool check_only) {
  Texts changed;
  for (const std::string& path : files) {
    const ContextPtr context = std::make_shared<Context>();
    const auto [text, differs] =
        need(context, format_rules(context, path, need(context, read_file(path))));
    if (!differs) continue;
    if (!check_only) need(context, write_file(path, text));
    changed.push_back(path);
  }
  return changed;
}

std::string format_text(const std::string& text, const std::string& name) {
  const ContextPtr context = std::make_shared<Context>();
  return need(context, format_rules(context, name, text)).text;
}

py::object ops(const PyRules& rules, const OpRequest& request) {
  return rows(op_table(need(rules.context, list_ops(*rules.context, request)), true));
}

PyGraph import_call(const ContextPtr& context, const std::string& path, const py::dict& options,
                    bool whole, const py::object& log) {
  GraphSource source;
  source.path = path;
  Given given("import_", options);
  given.take("symbols", source.symbols);
  given.take("types", source.types);
  given.take("number", source.number);
  given.take("inputs", source.inputs);
  given.take("weights", source.weights);
  given.take("buffers", source.buffers);
  given.take("replicated", source.replicated);
  given.end();
  const Log logger = log_to(log, context);
  return {context, need(context, whole ? import_graph(context, source, logger)
                                       : load_logged_graph(context, source, logger))};
}

void save(const PyGraph& graph, const std::string& path) {
  need(graph.context, check_graph_path(path));
  need(graph.context, save_model(graph.graph, path));
}

py::dict stats(const PyGraph& graph) {
  const GraphStats counted = count_graph(graph.graph);
  py::dict out;
  out["ops"] = rows(op_count_table(counted));
  out["nodes"] = counted.nodes;
  out["inputs"] = counted.inputs;
  out["outputs"] = counted.outputs;
  out["written"] = counted.written;
  out["hash"] = fmt::format("{:016x}", counted.hash);
  return out;
}

PyGraph generate(const ContextPtr& context, const std::string& family, const py::dict& options) {
  ModelRequest request;
  request.model.family = family;
  Given given("generate", options);
  for (const ModelNumber& number : model_numbers()) {
    std::string name(number.name);
    std::replace(name.begin(), name.end(), '-', '_');
    given.take(name.c_str(), *number.place(request));
  }
  given.take("quant", request.model.quant);
  given.take("lm_head", request.model.lm_head);
  given.take("eps", request.model.eps);
  given.take("opaque", request.model.opaque);
  given.take("shuffle", request.shuffle);
  given.end();
  return {context, need(context, generate_model(context, request))};
}

py::dict optimize_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                       const OptimizeRequest& request, bool prove, const std::string& output,
                       const py::object& log) {
  const ContextPtr& context = graph.context;
  const Log logger = log_to(log, context);
  need(context, check_graph_path(output));
  const LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  const auto variants = need(context, optimize(graph.graph, loaded, request, logger));
  if (!output.empty()) need(context, save_variants(variants, output, logger));
  py::list graphs;
  for (const GraphVariant& variant : variants) {
    py::dict row;
    row["variant"] = variant.name;
    row["graph"] = PyGraph{context, variant.result.graph};
    graphs.append(row);
  }
  py::dict out;
  out["graphs"] = graphs;
  out["passes"] = rows(pass_table(variants));
  out["rules"] = rows(rule_table(variants));
  out["choices"] = rows(choice_table(variants));
  out["saturations"] = rows(saturation_table(variants));
  if (!prove) return out;
  const auto proofs = prove_variants(graph.graph, loaded, request.pipeline,
                                     rewrite_options(request), variants, logger);
  Answer proved;
  add_proofs(proved, variants, proofs);
  for (const auto& [key, table] : proved.members) out[py::str(key)] = rows(std::get<Table>(table));
  for (std::size_t i = 0; i < proofs.size(); ++i)
    logger.say(proof_line(proofs[i], variants[i].name));
  return out;
}

py::dict dict_of(const OrderDifference& found) {
  py::dict out;
  out["order"] = found.order;
  out["seed"] = found.seed;
  out["nodes"] = found.nodes;
  out["counts"] = found.counts;
  out["difference"] = found.difference;
  out["tests"] = found.tests;
  return out;
}

py::dict fuzz_order_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                         const FuzzOrderRequest& request, const py::object& log) {
  const Log logger = log_to(log, graph.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  const FuzzReport report = need(graph.context, fuzz_orders(graph.graph, loaded, request));
  py::dict out;
  out["orders"] = rows(order_run_table(report));
  out["different"] = report.different.size();
  out["difference"] = py::none();
  if (!report.different.empty())
    out["difference"] =
        dict_of(need(graph.context, find_difference(graph.graph, loaded, request, logger)));
  return out;
}

FailureRequest failure_of(Given& given) {
  FailureRequest out;
  given.take("command", out.command);
  given.take("timeout", out.seconds);
  given.take("code", out.code);
  given.take("order", out.order);
  given.take("tokens", out.tokens);
  given.take("seed", out.seed);
  out.orders.seed = out.seed;
  return out;
}

/// Builds the request of bisect or reduce from their common options.
template <class Request>
Request failure_request(const char* command, const std::string& pipeline, const py::dict& options) {
  Request out;
  out.pipeline = pipeline;
  Given given(command, options);
  out.failure = failure_of(given);
  given.take("runs", out.most_runs);
  given.end();
  return out;
}

py::object bisect_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                       const std::string& pipeline, const py::dict& options,
                       const py::object& log) {
  const auto request = failure_request<BisectRequest>("bisect", pipeline, options);
  const Log logger = log_to(log, graph.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  return from_json(
      to_json(bisect_answer(need(graph.context, bisect(graph.graph, loaded, request, logger)))));
}

py::object reduce_call(const PyGraph& graph, const PyRules& rules, const Texts& files,
                       const Texts& params, const std::string& pipeline, const py::dict& options,
                       const py::object& log) {
  auto request = failure_request<ReduceRequest>("reduce", pipeline, options);
  request.files = files;
  const Log logger = log_to(log, graph.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  return from_json(
      to_json(reduce_answer(need(graph.context, reduce(graph.graph, loaded, request, logger)))));
}

/// Builds the space of explore or study from their common options.
ExploreRequest take_space(Given& given, const ContextPtr& context, const std::string& pipeline) {
  ExploreRequest out;
  out.pipeline = pipeline;
  std::vector<std::string> before;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  given.take("space", out.space);
  given.take("passes", out.passes);
  given.take("before", before);
  given.take("by", out.by);
  given.take("subsets", out.subsets);
  given.take("values", out.with);
  given.take("token_ranges", ranges);
  given.take("over", out.over);
  given.take("backend", out.backend);
  given.take("tokens", out.rows);
  given.take("repeats", out.repeats);
  for (const std::string& pair : before) out.before.push_back(need(context, parse_before(pair)));
  for (const auto& [first, last] : ranges) out.tokens.push_back({first, last});
  return out;
}

py::object explore_call(const PyGraph& graph, const PyRules& rules, const Texts& params,
                        const std::string& pipeline, const py::dict& options,
                        const py::object& log) {
  std::size_t most = 20;
  Given given("explore", options);
  const ExploreRequest request = take_space(given, graph.context, pipeline);
  given.take("most", most);
  given.end();
  const Log logger = log_to(log, graph.context);
  const LoadedRules loaded = loaded_rules(rules, params, logger, &graph);
  return from_json(to_json(
      explore_answer(need(graph.context, explore(graph.graph, loaded, request, logger)), most)));
}

py::dict study_call(const std::vector<std::pair<std::string, PyGraph>>& graphs,
                    const PyRules& rules, const Texts& params, const std::string& pipeline,
                    const std::string& file, const py::dict& options, const py::object& log) {
  if (graphs.empty()) throw mistake("PW1460", "a study needs at least one graph");
  const PyGraph& first = graphs.front().second;
  StudyRequest request;
  request.file = file;
  std::string shard = "1/1";
  Given given("study", options);
  request.space = take_space(given, first.context, pipeline);
  given.take("sample", request.space.sample);
  given.take("seed", request.space.seed);
  given.take("shard", shard);
  given.end();
  request.shard = need(first.context, parse_shard(shard));
  const Log logger = log_to(log, first.context);
  std::vector<StudyGraph> all;
  for (const auto& [name, graph] : graphs) {
    if (graph.context != first.context)
      throw mistake("PW1412", "the graphs belong to different sessions");
    all.push_back({name, graph.graph});
  }
  const LoadedRules loaded = loaded_rules(rules, params, logger, &first);
  const StudyProgress done = need(first.context, run_study(all, loaded, request, logger));
  py::dict out;
  out["units"] = done.units;
  out["done"] = done.done;
  out["runs"] = done.runs;
  return out;
}

py::object extract_call(const Texts& files, const py::dict& options) {
  ExtractRequest request;
  Given given("extract", options);
  given.take("solver", request.solver);
  given.take("steps", request.steps);
  given.take("seconds", request.seconds);
  given.end();
  std::vector<Extracted> found;
  const auto context = std::make_shared<Context>();
  for (const std::string& file : files) found.push_back(need(context, extract_file(file, request)));
  return from_json(to_json(extract_answer(found)));
}

py::dict compare(const PyGraph& before, const PyGraph& after, bool fold) {
  if (before.context != after.context)
    throw mistake("PW1412", "the graphs belong to different sessions");
  const GraphDiff diff = compare_graphs(before.graph, after.graph, fold);
  py::dict out;
  out["rows"] = rows(change_table(diff));
  out["matched"] = diff.matched;
  out["changed"] = diff.changed;
  out["removed"] = diff.removed;
  out["added"] = diff.added;
  return out;
}

/// Commands on the user's compile cache.
template <class T>
T need_cache(Result<T> result) {
  return need(std::make_shared<Context>(), std::move(result));
}

void add_rule_commands(py::module_& module) {
  module.def("check", &check, py::arg("session"), py::arg("files"), py::arg("analysis"),
             py::arg("proof"), py::arg("log"), "see piecewise.check");
  module.def("rule_order", &rule_order, py::arg("session"), py::arg("files"), py::arg("dot"),
             "see piecewise.check");
  module.def("explain", &explain_call, py::arg("graph"), py::arg("rules"), py::arg("params"),
             py::arg("rule"), py::arg("pipeline"), py::arg("options"), py::arg("log"),
             "see piecewise.explain");
  module.def(
      "code_meaning", [](const std::string& code) { return std::string(code_meaning(code)); },
      py::arg("code"), "Returns the meaning of a code such as N01; empty for any other word.");
  module.def("match", &match, py::arg("graph"), py::arg("pattern"), py::arg("files"),
             py::arg("params"), "see piecewise.match");
  module.def("verify", &verify_call, py::arg("rules"), py::arg("params"), py::arg("only"),
             py::arg("ranks"), py::arg("graph"), py::arg("log"), "see piecewise.verify");
  module.def("prove", &prove_call, py::arg("rules"), py::arg("params"), py::arg("only"),
             py::arg("log"), "see piecewise.prove");
  module.def("equal", &equal_call, py::arg("single"), py::arg("ranks"), py::arg("relation"),
             "see piecewise.equal");
  module.def(
      "test",
      [](const Texts& paths, const Texts& params, const std::string& only, std::uint64_t seed,
         bool update, const std::string& junit_path, const py::object& log) {
        return test({paths, params, only, seed, update}, junit_path, log);
      },
      py::arg("paths"), py::arg("params"), py::arg("only"), py::arg("seed"), py::arg("update"),
      py::arg("junit"), py::arg("log"), "see piecewise.test");
  module.def("format_files", &format_files, py::arg("files"), py::arg("check"),
             "see piecewise.fmt");
  module.def("format_rules", &format_text, py::arg("text"), py::arg("name") = "rules.pwr",
             "Formats a text of rules; comments are preserved.");
}

void add_study_commands(py::module_& module) {
  module.def("study", &study_call, py::arg("graphs"), py::arg("rules"), py::arg("params"),
             py::arg("pipeline"), py::arg("file"), py::arg("options"), py::arg("log"),
             "see piecewise.study");
  module.def(
      "merge_studies",
      [](const std::string& file, const Texts& from) {
        need(std::make_shared<Context>(), merge_studies(file, from));
      },
      py::arg("file"), py::arg("parts"), "see piecewise.merge_studies");
  module.def(
      "read_study",
      [](const std::string& file, std::size_t most) {
        return from_json(
            to_json(study_answer(need(std::make_shared<Context>(), read_study(file, most)))));
      },
      py::arg("file"), py::arg("most"), "see piecewise.read_study");
  module.def(
      "study_rows",
      [](const std::string& file) {
        return from_json(need(std::make_shared<Context>(), study_rows(file, true)));
      },
      py::arg("file"), "see piecewise.study_rows");
  module.def(
      "study_page",
      [](const std::string& file, std::size_t most, const std::string& title) {
        return study_page(need(std::make_shared<Context>(), read_study(file, most)), title);
      },
      py::arg("file"), py::arg("most"), py::arg("title"), "see piecewise.study_page");
}

void add_graph_commands(py::module_& module) {
  module.def("import_graph", &import_call, py::arg("session"), py::arg("path"), py::arg("options"),
             py::arg("whole"), py::arg("log"), "see piecewise.import_");
  module.def("export", &save, py::arg("graph"), py::arg("path"), "see piecewise.export");
  module.def("stats", &stats, py::arg("graph"), "see piecewise.stats");
  module.def("generate", &generate, py::arg("session"), py::arg("family"), py::arg("options"),
             "see piecewise.generate");
  module.def(
      "optimize",
      [](const PyGraph& graph, const PyRules& rules, const Texts& params,
         const std::string& pipeline, const std::string& output, const py::dict& options,
         const py::object& log) {
        OptimizeRequest request;
        request.pipeline = pipeline;
        request.stats = true;
        Given given("opt", options);
        given.take("trace", request.trace);
        given.take("verify_each", request.verify_each);
        given.take("naive", request.naive);
        given.take("limit", request.most_rewrites);
        bool prove = false;
        given.take("prove", prove);
        given.end();
        return optimize_call(graph, rules, params, request, prove, output, log);
      },
      py::arg("graph"), py::arg("rules"), py::arg("params"), py::arg("pipeline"), py::arg("output"),
      py::arg("options"), py::arg("log"), "see piecewise.opt");
  module.def(
      "fuzz_order",
      [](const PyGraph& graph, const PyRules& rules, const Texts& params,
         const std::string& pipeline, std::size_t orders, std::uint64_t seed, bool reduce,
         const py::object& log) {
        FuzzOrderRequest request;
        request.pipeline = pipeline;
        request.options.orders = orders;
        request.options.seed = seed;
        request.reduce = reduce;
        return fuzz_order_call(graph, rules, params, request, log);
      },
      py::arg("graph"), py::arg("rules"), py::arg("params"), py::arg("pipeline"), py::arg("orders"),
      py::arg("seed"), py::arg("reduce"), py::arg("log"), "see piecewise.fuzz_order");
  module.def("bisect", &bisect_call, py::arg("graph"), py::arg("rules"), py::arg("params"),
             py::arg("pipeline"), py::arg("options"), py::arg("log"), "see piecewise.bisect");
  module.def("reduce", &reduce_call, py::arg("graph"), py::arg("rules"), py::arg("files"),
             py::arg("params"), py::arg("pipeline"), py::arg("options"), py::arg("log"),
             "see piecewise.reduce");
  module.def("extract", &extract_call, py::arg("files"), py::arg("options"),
             "see piecewise.extract");
  module.def("explore", &explore_call, py::arg("graph"), py::arg("rules"), py::arg("params"),
             py::arg("pipeline"), py::arg("options"), py::arg("log"), "see piecewise.explore");
  add_study_commands(module);
  module.def("compare", &compare, py::arg("before"), py::arg("after"), py::arg("fold") = true,
             "see piecewise.diff");
}

void add_machine_commands(py::module_& module) {
  module.def(
      "ops",
      [](const PyRules& rules, const Texts& names, const std::string& backend, bool splitting) {
        return ops(rules, {names, backend, splitting});
      },
      py::arg("rules"), py::arg("names"), py::arg("backend"), py::arg("splitting"),
      "see piecewise.ops");
  module.def(
      "cache_stats", [] { return rows(kept_table(need_cache(kept_kernels()))); },
      "Counts the cached kernels: rows of what, number and bytes.");
  module.def(
      "cache_verify", [] { return rows(verified_table(need_cache(verify_kept_kernels()))); },
      "Reads every cached kernel and removes damaged ones: rows of what and number.");
  module.def(
      "cache_why",
      [](const std::string& key) {
        return rows(need_cache(key.empty() ? explain_kept_kernels() : explain_kept_kernel(key)));
      },
      py::arg("key") = "",
      "Explains the newest cached objects: rows of made_at, kind, subject, key and changes. Given "
      "the first digits of a key: rows of part, value and before.");
  module.def(
      "cache_clear", [] { return rows(cleared_table(need_cache(clear_kept_kernels()))); },
      "Removes all cached kernels: a row of what and number.");
  module.def(
      "doctor", [] { return rows(capability_table(list_capabilities())); },
      "Lists what this machine provides: rows of what, state and used for.");
}

}  // namespace

void add_commands(py::module_& module) {
  add_rule_commands(module);
  add_graph_commands(module);
  add_machine_commands(module);
}

}  // namespace pw::python
